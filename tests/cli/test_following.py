"""`kview records --follow`: what is written from now on, and where it begins."""

import subprocess
import uuid
from typing import Any, cast

import pytest

from kview.cli.records import FOLLOWED, MOST_FOLLOW_RATE
from kview.cli.values import ByteSize
from kview.derive.following import MOST_BYTES_PER_SECOND, POLL_S, Following
from kview.language import words
from kview.model.inspection import (
    MOST_RECORDS,
    Damage,
    DamageKind,
    InspectionFailure,
    InspectionFailureKind,
    Isolation,
    Payload,
    Record,
    TimeType,
)
from kview.model.tail import TailAnswer, TailRequest
from kview.model.where import Candidate, Where
from kview.run.observing import ConnectedSource
from kview.run.records import RecordsOptions, print_records
from kview.where.parse import parse
from tests.cli.commands import KVIEW, ROOT, run_here
from tests.serve.clients import producer
from tests.served import Served
from tests.waiting import wait_until


@pytest.mark.parametrize("flag", ["--last=3", "--from=-1h", "--to=14:05", "--offset=0:3", "--partition=1"])
def test_it_begins_at_the_end(flag: str) -> None:
    done = run_here("records", "127.0.0.1:1", "orders", "--follow", flag)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--follow begins at the end of all partitions: leave out" in done.stderr


def test_a_topic_that_is_not_there_is_bad_use(simulated_cluster: Served) -> None:
    done = run_here("records", simulated_cluster.bootstrap, "nothing", "--follow")
    assert (done.returncode, done.stdout) == (2, "") and "the cluster has no topic 'nothing'" in done.stderr


def test_a_limit_of_bytes_is_refused() -> None:
    done = run_here("records", "127.0.0.1:1", "orders", "--follow", "--max-bytes", "1g")
    assert (done.returncode, done.stdout) == (2, "") and "leave it out with --follow" in done.stderr


def test_the_limits_that_are_said_are_those_that_hold() -> None:
    assert words.count(int(MOST_RECORDS / POLL_S)) == FOLLOWED
    assert ByteSize().convert(MOST_FOLLOW_RATE, None, None) == MOST_BYTES_PER_SECOND
    fast = Following("t", Isolation.READ_COMMITTED, bytes_per_second=4_300_000_000)
    assert fast.question().most_bytes == MOST_BYTES_PER_SECOND * POLL_S  # Fetch has room for 2 GiB


class Source:
    """A cluster that gives one answer."""

    def __init__(self, **more: Any) -> None:
        self._more = more

    def connect(self) -> None:
        """It always is."""

    def close(self) -> None:
        """It always may be."""

    async def ask(self, question: TailRequest) -> TailAnswer:
        """The answer."""
        payload = Payload(b"x", 1)
        found = Candidate(0, Record(0, 0, TimeType.CREATE, payload, payload))
        return TailAnswer(question, (found,), ((0, 1),), asked_ms=1_800_000_000_000, **self._more)


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ({"passed": 900, "matched": 1}, 0, ""),
        ({"passed": 900, "matched": 701}, 0, "700 records passed over: more is written"),
        ({"unread": ((3, InspectionFailure(InspectionFailureKind.NO_LEADER)),)}, 1, "partition 3"),
        ({"damage": ((0, Damage(5, DamageKind.CORRUPT, 2_000)),)}, 1, "its checksum is wrong"),
    ],
)
def test_what_is_lost_is_said(
    more: dict[str, Any], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = RecordsOptions("t", where=cast(Where, parse("x")), most=1, follow=True)
    assert print_records(cast(ConnectedSource, Source(**({"matched": 1} | more))), options) == code
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 1 and said in shown.err and bool(said) == bool(shown.err)


@pytest.mark.slow  # tests/observe/test_tail.py has what it reads
def test_it_prints_what_is_written_from_now_on(simulated_cluster: Served) -> None:
    topic = f"follow-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2], [1, 2, 0]])
    client = producer(simulated_cluster.bootstrap)
    client.produce(topic, b"old", partition=0)
    assert client.flush(20) == 0
    flags = ("--follow", "--where", "not value = odd", "--limit", "2")
    with subprocess.Popen(
        [*KVIEW, "records", simulated_cluster.bootstrap, topic, *flags],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as child:
        try:

            def written() -> bool:
                for partition, value in enumerate((b"odd", b"even")):
                    client.produce(topic, value, partition=partition)
                return client.flush(20) == 0 and child.poll() is not None

            wait_until(written, "the end of the command")
            output = child.communicate()[0]
        finally:
            child.kill()
    assert child.returncode == 0
    lines = output.splitlines()
    assert len(lines) == 2 and all(
        line.startswith(f"{topic}-1:") and line.endswith("  even") for line in lines
    )
