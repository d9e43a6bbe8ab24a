"""What a plan says of leaders that answer late, and of partitions that are too many."""

import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kview.model.inspection import Cost
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.search import SearchPlan, SearchPlanRequest
from kview.observe.asking import DEADLINE_S, POLL_S, Asking, Cancelled, OutOfTime, Ticket
from kview.observe.loop import Loop
from kview.observe.search_plan import MOST_PARTITIONS, Planner
from kview.wire.list_offsets import ListOffsetsAnswer


class Brokers:
    """Answers for three brokers, of which `late` take too long, and `hung` wait until they are cancelled."""

    def __init__(self, loop: Loop, partitions: int, late: Sequence[int], hung: Sequence[int] = ()) -> None:
        self.loop, self.partitions, self.late, self.hung = loop, partitions, late, hung
        self.tickets: dict[int, Ticket] = {}
        self.cost = Cost()

    def brokers(self) -> Sequence[int]:
        return [0]

    def spent_since(self, before: Cost) -> Cost:
        return before

    async def metadata(self, broker: int, topic: str, ticket: Ticket) -> Any:
        rows = [SimpleNamespace(partition_index=n, leader_id=n % 3) for n in range(self.partitions)]
        return SimpleNamespace(topics=[SimpleNamespace(name=topic, error_code=0, partitions=rows)])

    async def ask(self, broker: int, make: Any, ticket: Ticket) -> Any:
        self.tickets[broker] = ticket
        while broker in self.hung:
            await self.loop.net.sleep(POLL_S)
            if ticket.cancelled:
                raise Cancelled
        request = make(SimpleNamespace(versions={2: (0, 5)}))
        if broker in self.late or type(request).__name__ == "DescribeLogDirsRequest":
            raise OutOfTime
        numbers = np.array(range(broker, self.partitions, 3), np.int32)
        zeros = np.zeros(len(numbers), np.int64)
        errors = zeros.astype(np.int16)
        return ListOffsetsAnswer(0, ("t",), (len(numbers),), numbers, errors, zeros, zeros + 9)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop(lambda: 0, time.monotonic)
    made.start()
    yield made
    made.stop()


def in_time(loop: Loop) -> Ticket:
    return Ticket(deadline_s=loop.monotonic() + DEADLINE_S)


def planned(loop: Loop, brokers: Brokers, ticket: Ticket) -> SearchPlan:
    planner = Planner(cast(Asking, brokers), SearchPlanRequest("t"), ticket)
    plan: SearchPlan = loop.run(lambda: planner.plan(Cost(), 0))
    return plan


def test_a_leader_that_is_late_fails_only_its_own_partitions(loop: Loop) -> None:
    brokers = Brokers(loop, 6, late=[1])
    plan = planned(loop, brokers, in_time(loop))
    assert not plan.failure
    failed = [span for span in plan.spans if span.failure]
    failures = {span.partition: (span.failure.kind, span.failure.broker) for span in failed}
    assert failures == {1: (Kind.TIMEOUT, 1), 4: (Kind.TIMEOUT, 1)}
    assert len({id(ticket) for ticket in brokers.tickets.values()}) == 3


def test_partitions_that_are_too_many_are_said(loop: Loop) -> None:
    plan = planned(loop, Brokers(loop, MOST_PARTITIONS + 2, late=[]), in_time(loop))
    left_out = [span for span in plan.spans if span.failure.kind is Kind.TOO_MANY]
    assert [span.partition for span in left_out] == [MOST_PARTITIONS, MOST_PARTITIONS + 1]
    assert len(plan.spans) == MOST_PARTITIONS + 2


def test_a_plan_is_cancelled_at_all_leaders(loop: Loop) -> None:
    with pytest.raises(Cancelled):
        planned(loop, Brokers(loop, 6, late=[], hung=[0, 2]), Ticket(True, in_time(loop).deadline_s))
