"""A failover read from the screen: one body, on the simulated cluster and on a real Kafka cluster."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from tests.conftest import ClusterFactory
from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.settings import KAFKA_DEFAULT_TIMES
from tests.waiting import PATIENCE_S

TEACHING = [
    [0, 3, 1],
    [3, 1, 4],
    [1, 4, 2],
    [4, 2, 5],
    [2, 5, 0],
    [5, 0, 3],
    [0, 3, 1],
    [3, 1, 4],
    [1, 4, 2],
    [4, 2, 5],
]
"""`invoice` as the teaching table places it."""

LEADER, NEXT, OTHER = TEACHING[0]

SEEN_SILENT_S = 4
FENCED_WITHIN_S = (6.5, 12.0)
"""Kafka's session of 9 s: from the last heartbeat, up to 2 s before the crash, and a check every eighth of a
session."""

BACK_S = 60
PURGED_WITHIN_S = 5

SEEN_WITHIN_S = 1.5
"""An interval, and what an observation and a drawing take."""

FRAME_S = 0.5
"""Within it what began to be drawn is drawn: less than an interval, so never the next observation."""

COUNTDOWN = re.compile(r"fenced (?:in )?[━─]+ ≈ ([\d.]+) s|fenced any moment now|fencing overdue")

UNHEARD = "no word from controllers"

COUNTDOWN_IS_RIGHT_WITHIN_S = 3.0
"""It counts from the first silence, but the session ran from the last heartbeat, up to 2 s earlier."""


class Row(NamedTuple):
    """A partition's row on the screen."""

    leader: int
    leader_silent: bool
    epoch: int
    signs: dict[int, str]
    isr: str
    watermark: int
    status: str


ROW = re.compile(
    r"^[ ▸]*(?P<partition>\d+) +(?P<leader>\d+)(?P<mark>[✕▲]?)·(?P<epoch>\d+) +"
    r"(?P<replicas>(?:\d+[●○◌✕] ?)+?) +(?P<isr>\d/\d) +"
    r"[\d,–]+ +(?P<watermark>[\d,]+) +(?P<rest>.*)$",
    re.MULTILINE,
)


def row(terminal: PseudoTerminal, partition: int = 0) -> Row | None:
    """The partition's row, if the screen shows it."""
    for found in ROW.finditer(terminal.text()):
        if int(found["partition"]) == partition:
            return Row(
                leader=int(found["leader"]),
                leader_silent=found["mark"] == "✕",
                epoch=int(found["epoch"]),
                signs={int(replica[:-1]): replica[-1] for replica in found["replicas"].split()},
                isr=found["isr"],
                watermark=int(found["watermark"].replace(",", "")),
                status=found["rest"],
            )
    return None


@dataclass(frozen=True)
class Stage:
    """A cluster with traffic on `invoice`, and how its broker LEADER is crashed and brought back."""

    arguments: tuple[str, ...]
    crash: Callable[[PseudoTerminal], None]
    bring_back: Callable[[PseudoTerminal], None]


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.slow)])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The two clusters."""
    if request.param == "simulated":
        yield Stage(("--simulate",), lambda terminal: terminal.press("K"), bring_back_by_key)
        return
    factory: ClusterFactory = request.getfixturevalue("real_kafka_factory")
    kafka: RealKafka = factory(brokers=6, overrides=KAFKA_DEFAULT_TIMES)
    kafka.create_topic("invoice", TEACHING)
    with traffic(kafka.bootstrap_servers):
        yield Stage(
            ("connect", kafka.bootstrap_servers),
            lambda terminal: kafka.kill(LEADER),
            lambda terminal: kafka.restart(LEADER),
        )


def bring_back_by_key(terminal: PseudoTerminal) -> None:
    """B on broker LEADER, which the first row of the overview is."""
    terminal.press("1")
    terminal.wait_for_text(r"▸0 [●✕◌]")
    terminal.press("B")
    terminal.wait_for_text("was started")
    open_invoice(terminal)


@contextmanager
def traffic(bootstrap_servers: str) -> Iterator[None]:
    """A producer with acks=all that writes to every partition of `invoice` a few times a second."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 5})
    ending = threading.Event()

    def produce() -> None:
        while not ending.wait(0.2):
            for partition in range(len(TEACHING)):
                try:
                    producer.produce("invoice", b"x" * 100, partition=partition)
                except BufferError:
                    break  # full of records for the crashed broker: they go when there is a leader again
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        producer.purge()
        producer.flush(PURGED_WITHIN_S)


def open_invoice(terminal: PseudoTerminal) -> None:
    """Go to the topic invoice by its name: all its partitions; the first is selected."""
    terminal.press(":")
    terminal.wait_for_text("GO TO")
    terminal.press("invoice")
    terminal.wait_for_text(r"▸ *(topic )?invoice\b")
    terminal.press("\r")
    terminal.wait_for(lambda: row(terminal), "the partitions of invoice")


def moves(terminal: PseudoTerminal, what: str, timeout_s: float) -> None:
    """Wait until the watermark of invoice-0 has risen twice."""
    seen: list[int] = []

    def rose() -> bool:
        now = row(terminal)
        if now and (not seen or now.watermark != seen[-1]):
            seen.append(now.watermark)
        return len(seen) > 2

    terminal.wait_for(rose, what, timeout_s)
    assert seen == sorted(seen)


def test_a_crash_is_seen_as_kafka_does_it(stage: Stage) -> None:
    with kview_on_a_terminal(*stage.arguments) as terminal:
        terminal.wait_for_text("6 of 6 answer")
        terminal.wait_for_text("invoice")
        open_invoice(terminal)
        healthy = terminal.wait_for(
            lambda: seen if (seen := row(terminal)) and seen.isr == "3/3" else None,
            "a full ISR",
        )
        assert healthy.leader == LEADER and not healthy.leader_silent
        moves(terminal, "watermarks move", 10)

        crashed_s = time.monotonic()
        stage.crash(terminal)

        # Silent, and still listed as leader and in the ISR: that is Kafka for the whole session.
        silent = terminal.wait_for(
            lambda: seen if (seen := row(terminal)) and seen.leader_silent else None, "silence", SEEN_SILENT_S
        )
        assert (silent.leader, silent.epoch, silent.isr) == (LEADER, healthy.epoch, "3/3")
        terminal.wait_for_text(
            rf"✕ broker {LEADER} silent [\d.]+ s [\s\S]*\d+ partitions? down", SEEN_SILENT_S
        )
        terminal.wait_for_text(r"\d+ frozen", SEEN_SILENT_S)
        terminal.wait_for_text(rf"{COUNTDOWN.pattern}|{UNHEARD}", SEEN_SILENT_S)

        fenced = watch_until_fenced(terminal, silent)
        took_s = time.monotonic() - crashed_s
        assert FENCED_WITHIN_S[0] <= took_s <= FENCED_WITHIN_S[1] + SEEN_WITHIN_S, took_s

        # One step: the next replica leads with the next epoch, the ISR is without the old leader.
        assert (fenced.leader, fenced.epoch, fenced.isr) == (NEXT, healthy.epoch + 1, "2/3")
        assert fenced.signs == {LEADER: "✕", NEXT: "●", OTHER: "○"}
        moves(terminal, "watermarks move again", PATIENCE_S)

        stage.bring_back(terminal)
        terminal.wait_for(
            lambda: (seen := row(terminal)) and seen.isr == "3/3" and seen.signs[LEADER] in "○●",
            "a full ISR again, and an answer of the broker that was away",
            BACK_S,
        )
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def watch_until_fenced(terminal: PseudoTerminal, silent: Row) -> Row:
    """The first row with another leader. Before it the row stays as it was and the countdown falls.

    On a busy machine there is no countdown while the controllers are not heard, who alone can fence; and the
    head of a frame can be seen before its rows: no countdown, and the new leader next.
    """
    countdowns: list[float] = []
    unheard: list[str] = []

    def fenced() -> Row | None:
        seen = row(terminal)
        if seen is None:
            return None
        if seen.leader != silent.leader:
            return seen
        assert seen[:6] == silent[:6], (
            "a silent leader's partition changes in one step, and its watermark not before"
        )
        countdown = COUNTDOWN.search(terminal.text())
        if countdown is None and UNHEARD in terminal.text():
            unheard.append(terminal.text())
            return None
        if countdown is None:
            # Brokers and partitions are two answers: the fencing may be in the first one alone.
            is_fenced = f"broker {LEADER} fenced" in terminal.text()
            return terminal.wait_for(
                lambda: now if (now := row(terminal)) and now.leader != silent.leader else None,
                "the countdown is there as long as the broker is silent",
                SEEN_WITHIN_S if is_fenced else FRAME_S,
            )
        countdowns.append(float(countdown[1] or 0))
        return None

    found = terminal.wait_for(fenced, "a new leader", FENCED_WITHIN_S[1] + SEEN_WITHIN_S)
    assert countdowns == sorted(countdowns, reverse=True), countdowns
    if not unheard:
        assert len(set(countdowns)) > 10, countdowns
        assert countdowns[-1] <= COUNTDOWN_IS_RIGHT_WITHIN_S, countdowns
    return found
