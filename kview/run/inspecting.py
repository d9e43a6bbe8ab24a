"""Carries questions from the screen's loop to the observer's thread, and their answers back."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from kview.model.answers import unanswered
from kview.model.inspection import A, InspectionFailureKind, Question

if TYPE_CHECKING:
    from kview.observe.observer import Observer

LIMIT_S = 20.0
"""An answer that takes longer will not come, because the observer answers within its own deadline. It does
not come if the observer is closed in between."""


async def ask(observer: "Observer | None", question: Question[A]) -> A:
    """Return the answer. Never raises. A task that is cancelled stops the observer's further requests."""
    if observer is None:
        return unanswered(question, InspectionFailureKind.NOT_CONNECTED)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def arrived(answer: object) -> None:
        if not future.done():
            future.set_result(answer)

    def on_answer(answer: object) -> None:
        with suppress(RuntimeError):  # the screen has ended
            loop.call_soon_threadsafe(arrived, answer)

    ticket = observer.inspect(question, on_answer)
    try:
        return cast(A, await asyncio.wait_for(future, LIMIT_S))
    except TimeoutError:
        return unanswered(question, InspectionFailureKind.TIMEOUT)
    finally:
        ticket.cancelled = True
