"""Spark's figures on the dashboard: they appear, they are right, and nothing of Spark outlives kview."""

import os
import re
import signal
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kview.model.states import BrokerState
from kview.recording.reader import Recording
from tests.e2e.processes import descendants, jvms, only_jvm, runs
from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("spark_java")

STARTS_WITHIN_S = 300
"""A start takes ten seconds on a quiet machine of two cores."""

COUNTED_S = 11.0

CLUSTER = re.compile(r"all topics +([\d,]+) +([\d,]+)")


def recording(state: Path) -> Recording:
    (folder,) = (state / "kview" / "flight").iterdir()
    return Recording.open(folder)


def records(state: Path) -> int:
    """All records in the user's topics, as the cluster itself tells a client that is not ours."""
    tape = recording(state)
    seen = tape.at_place(len(tape.moments()) - 1)
    up = seen.brokers.state == BrokerState.UP
    servers = [f"{h}:{p}" for h, p in zip(seen.brokers.host[up], seen.brokers.port[up], strict=True)]
    consumer = Consumer({"bootstrap.servers": ",".join(servers), "group.id": "counting"})
    try:
        table = seen.partitions
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, int(partition)), timeout=10)[1]
            for topic, partition in zip(table.topic, table.partition, strict=True)
            if not topic.startswith("__")
        )
    finally:
        consumer.close()


def wait_for_spark(terminal: PseudoTerminal) -> None:
    terminal.wait_for_text(r"Spark ● running", STARTS_WITHIN_S)


@pytest.mark.slow  # tests/pipeline has the job, this one its way to the screen
def test_figures_are_those_of_the_cluster_and_a_killed_jvm_is_told(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    with kview_on_a_terminal("--simulate", environment=environment, spark=True) as terminal:
        terminal.wait_for_text("invoice")
        terminal.press("6")
        terminal.wait_for_text(r"Spark ◌ starting")
        wait_for_spark(terminal)
        counts: list[tuple[float, int]] = []

        def agree() -> bool:
            """Whether the last ten whole seconds are as many as a client counted in eleven, whose traffic is
            steady unless the machine is busy."""
            counts.append((time.monotonic(), records(tmp_path)))
            now_s, count = counts[-1]
            at_s, before = next(
                then for then in reversed(counts) if now_s - then[0] > COUNTED_S or then is counts[0]
            )
            shown = CLUSTER.search(terminal.text())
            rate = (count - before) / max(now_s - at_s, 1)
            is_long = now_s - at_s > COUNTED_S
            return (
                is_long
                and shown is not None
                and int(shown[1].replace(",", "")) == pytest.approx(rate, rel=0.05)
            )

        terminal.wait_for(lambda: agree() or None, "Spark's figure is the client's")

        os.kill(only_jvm(terminal.pid), signal.SIGKILL)
        terminal.wait_for_text(r"failed: Java was killed \(SIGKILL\)")

        left = [pid for pid, _ in descendants(terminal.pid)]
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        for pid in left:
            wait_until(lambda pid=pid: not runs(pid), f"the end of {pid}")  # type: ignore[misc]


@pytest.mark.parametrize(
    "how",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_no_jvm_is_left(how: signal.Signals) -> None:
    with kview_on_a_terminal("--simulate", spark=True) as terminal:
        terminal.wait_for_text("invoice")
        terminal.wait_for(
            lambda: jvms(terminal.pid),
            "a JVM",
            STARTS_WITHIN_S,
        )
        left = [pid for pid, _ in descendants(terminal.pid)]
        os.kill(terminal.pid, how)
        for pid in left:
            wait_until(lambda pid=pid: not runs(pid), f"the end of {pid}")  # type: ignore[misc]
