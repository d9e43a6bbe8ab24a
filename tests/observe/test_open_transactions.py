"""When a transaction counts as hanging: only if every coordinator could have told of it, and did not."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kview.model.snapshot import Transactions
from kview.model.states import TransactionState
from kview.observe.layout import Layout, layout
from kview.observe.transactions import (
    NO_SUCH_TRANSACTION,
    STATES_TOPIC,
    Coordinated,
    OpenTransactions,
    coordinated,
    read_producers,
)
from tests.observe.test_offsets import World, topics

PRODUCER, NAME, AT_MS = 4_711, "payments-app", 1_000
KEY = ("payments", 0)


def cluster(second: int = 2) -> Layout:
    """Broker 1 leads the partition, and brokers 1 and `second` coordinate transactions."""
    world: World = {"payments": ("id-p", {0: (1, (1, 2))})}
    world[STATES_TOPIC] = ("id-t", {0: (1, (1, 2)), 1: (second, (1, 2))})
    return layout(topics(world), None)


def said_by(broker: int, partitions: tuple[int, ...] | None = None, probe: int = 105) -> Coordinated:
    """A broker's answer: it has the transaction with these partitions of the topic, or does not have it."""
    known: list[Any] = [
        SimpleNamespace(
            transactional_id=NAME,
            error_code=0,
            transaction_state="Ongoing",
            transaction_start_time_ms=500,
            transaction_timeout_ms=60_000,
            topics=[SimpleNamespace(topic="payments", partitions=partitions)],
        )
    ]
    refused = SimpleNamespace(transactional_id=NO_SUCH_TRANSACTION, error_code=probe)
    told = known if partitions is not None else []
    answer = SimpleNamespace(transaction_states=[*told, refused])
    return coordinated([PRODUCER], {PRODUCER: NAME} if told else {}, answer, broker, (1, 2), AT_MS)


def held_by(*answers: Coordinated, read_ms: int = AT_MS + 1, now: Layout | None = None) -> tuple[str, str]:
    """The transactional id and the state that the table has, if brokers 1, 2 … gave these answers."""
    table = table_of(*answers, read_ms=read_ms, now=now)
    return str(table.transactional_id[0]), str(table.state[0])


def table_of(*answers: Coordinated, read_ms: int = AT_MS + 1, now: Layout | None = None) -> Transactions:
    """What is known of the transaction, if brokers 1, 2 … gave these answers."""
    known, seen = OpenTransactions(), now or cluster()
    producer = SimpleNamespace(
        producer_id=PRODUCER, producer_epoch=3, current_txn_start_offset=32, last_timestamp=700
    )
    idle = SimpleNamespace(producer_id=9, producer_epoch=0, current_txn_start_offset=-1, last_timestamp=700)
    part = SimpleNamespace(partition_index=0, error_code=0, active_producers=[idle, producer])
    topic = SimpleNamespace(name="payments", partitions=[part])
    read_producers(SimpleNamespace(topics=[topic]), known.held, AT_MS - 1)
    known.coordinated = {broker: answer for broker, answer in enumerate(answers, 1)}
    rows = seen.rows_of(["payments"], [1], np.array([0]))
    known.settle(seen, rows, np.array([read_ms]))
    table = known.table(seen)
    assert (table.producer_id.tolist(), table.start_offset.tolist()) == ([PRODUCER], [32])
    return table


UNKNOWN, HANGING = ("", TransactionState.UNKNOWN.value), ("", TransactionState.HANGING.value)


def test_a_transaction_has_the_name_that_its_coordinator_tells() -> None:
    assert held_by(said_by(1), said_by(2, (0, 3))) == (NAME, "Ongoing")


def test_one_that_no_coordinator_has_hangs() -> None:
    assert held_by(said_by(1), said_by(2)) == HANGING


def test_so_does_one_whose_coordinator_does_not_count_the_partition() -> None:
    assert held_by(said_by(1), said_by(2, (3,))) == (NAME, TransactionState.HANGING.value)


@pytest.mark.parametrize(
    ("answers", "now"),
    [
        ((), cluster()),
        ((said_by(1),), cluster()),  # the other coordinator has not answered
        ((said_by(1), said_by(2, probe=53)), cluster()),  # kview may not see every transaction
        ((said_by(1), said_by(2)), cluster(second=1)),  # a coordinator has changed since
        ((said_by(1), said_by(2)), cluster(second=-1)),  # nobody leads a part of them
    ],
)
def test_what_not_everybody_could_tell_is_unknown(answers: tuple[Coordinated, ...], now: Layout) -> None:
    assert held_by(*answers, now=now) == UNKNOWN


def test_that_kview_may_not_see_whose_it_is_has_kafkas_error() -> None:
    assert table_of(said_by(1), said_by(2, probe=53)).error_code.tolist() == [53]
    assert table_of(said_by(1), said_by(2)).error_code.tolist() == [0]
    assert table_of(said_by(1)).error_code.tolist() == [0], "it was not asked yet"


def test_one_that_has_just_ended_is_not_hanging() -> None:
    """Its coordinator no longer has it, and its end has not been read yet."""
    assert held_by(said_by(1), said_by(2), read_ms=AT_MS - 1) == UNKNOWN
