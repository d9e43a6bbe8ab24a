"""Collects the results of a request's parts, which arrive at different times, into one response."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from kview.serve.call import Call, Steps, shortened
from kview.simulate.controllers.quorum import FORWARD_TIMEOUT_MS
from kview.simulate.results import AdminResult, CreateTopicResult

T = TypeVar("T")
R = TypeVar("R")

PART_ITEMS = 500
"""Number of items that the engine works on at once. It takes about 10 ms for the slowest of them."""


class Gather:
    """Collects several results and answers with them, in order, once all have arrived."""

    def __init__(self, call: Call, respond: Callable[[list[Any]], Any]) -> None:
        self._call = call
        self._respond = respond
        self._rows: list[Any] = []
        self._missing = 1  # starts at 1 for `close`, because results may arrive at once

    def place(self) -> int:
        """Reserve a place for one more result, and return its index."""
        self._rows.append(None)
        self._missing += 1
        return len(self._rows) - 1

    def put(self, place: int, row: Any) -> None:
        """Store the result for a place. The last one sends the answer."""
        self._rows[place] = row
        self.close()

    def close(self) -> None:
        """Count down the missing results, and answer when none is missing.

        Call this once after all places have been reserved.
        """
        self._missing -= 1
        if self._missing == 0:
            self._call.answer(self._respond(self._rows))


def in_parts(items: Sequence[T]) -> list[Sequence[T]]:
    """Cut a list into parts that the engine can work on at once. An empty list is one part, too."""
    return [items[begin : begin + PART_ITEMS] for begin in range(0, max(1, len(items)), PART_ITEMS)]


def ask_in_parts(
    items: Sequence[T],
    ask: Callable[[Sequence[T], Callable[[Sequence[R]], None]], None],
    done: Callable[[list[R]], None],
) -> Steps:
    """Ask about many items, some at a time, and pass all results to `done`, in order.

    `ask` gets a part of the items and a function that takes their results, now or later.
    """
    parts = in_parts(items)
    results: list[Sequence[R]] = [()] * len(parts)
    missing = len(parts)

    def arrived(index: int, result: Sequence[R]) -> None:
        nonlocal missing
        results[index] = result
        missing -= 1
        if missing == 0:
            done([row for part in results for row in part])

    for index, part in enumerate(parts):
        ask(part, partial(arrived, index))
        yield


def by_topic(rows: Sequence[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Group (topic, row) pairs by topic, in the order in which the topics come first."""
    topics: dict[str, list[Any]] = {}
    for topic, row in rows:
        topics.setdefault(topic, []).append(row)
    return topics


def forward(call: Call, ask: Callable[[], T], late: T, done: Callable[[T], None]) -> None:
    """Let the controller carry out `ask`, and pass its result to `done`, or `late` without a controller."""
    call.cluster.forwarding.forward(call.broker, ask, late, FORWARD_TIMEOUT_MS, done, call.later)


def message_of(result: AdminResult | CreateTopicResult) -> str | None:
    """Return the error message of a result for its response."""
    return None if result.message is None else shortened(result.message)
