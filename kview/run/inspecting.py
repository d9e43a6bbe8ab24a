"""Carries questions from the screen's loop to the observer's thread, and their answers back."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast

from kview.model.inspection import (
    DirectoriesAnswer,
    DirectoriesRequest,
    FirstRecordAnswer,
    FirstRecordRequest,
    InspectionFailure,
    InspectionFailureKind,
    Question,
    RecordsAnswer,
    RecordsRequest,
    SettingsAnswer,
    SettingsRequest,
)

if TYPE_CHECKING:
    from kview.observe.observer import Observer

LIMIT_S = 20.0
"""An answer that takes longer will not come, because the observer answers within its own deadline. It does
not come if the observer is closed in between."""

A = TypeVar("A", RecordsAnswer, SettingsAnswer, DirectoriesAnswer, FirstRecordAnswer)


async def records(observer: "Observer | None", request: RecordsRequest) -> RecordsAnswer:
    """Return the records. Never raises. A task that is cancelled stops the observer's further requests."""
    none = RecordsAnswer(request, failure=_failure(observer))
    return none if observer is None else await _asked(observer, request, none)


async def settings(observer: "Observer | None", request: SettingsRequest) -> SettingsAnswer:
    """Return the settings. Never raises."""
    none = SettingsAnswer(request, failure=_failure(observer))
    return none if observer is None else await _asked(observer, request, none)


async def directories(observer: "Observer | None", request: DirectoriesRequest) -> DirectoriesAnswer:
    """Return the log directories. Never raises."""
    none = DirectoriesAnswer(request, failure=_failure(observer))
    return none if observer is None else await _asked(observer, request, none)


async def first_record(observer: "Observer | None", request: FirstRecordRequest) -> FirstRecordAnswer:
    """Return when a partition's first record was written. Never raises."""
    none = FirstRecordAnswer(request, failure=_failure(observer))
    return none if observer is None else await _asked(observer, request, none)


def _failure(observer: "Observer | None") -> InspectionFailure:
    absent = observer is None
    return InspectionFailure(InspectionFailureKind.NOT_CONNECTED if absent else InspectionFailureKind.TIMEOUT)


async def _asked(observer: "Observer", request: Question, none: A) -> A:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def arrived(answer: object) -> None:
        if not future.done():
            future.set_result(answer)

    def on_answer(answer: object) -> None:
        with suppress(RuntimeError):  # the screen has ended
            loop.call_soon_threadsafe(arrived, answer)

    ticket = observer.inspect(request, on_answer)
    try:
        return cast(A, await asyncio.wait_for(future, LIMIT_S))
    except TimeoutError:
        return none
    finally:
        ticket.cancelled = True
