"""Records on a terminal, from the brokers of a simulated cluster, and the flag that forbids them."""

import json
import re
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.decode.test_avro import INVOICE, VALUE, written
from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal
from tests.observe.rest_server import RestServer, http
from tests.observe.test_decoding import prefixed
from tests.observe.test_registry import answered as schema
from tests.real_kafka.cluster import RealKafka
from tests.serve.clients import consumer, deliver, producer
from tests.waiting import wait_until

PACE = 12
"""After so many records, one at a time, kview knows how often the group commits."""


def open_records(terminal: PseudoTerminal) -> None:
    """Go from the overview to a partition's topic, and from there to its records."""
    terminal.wait_for_text(r"invoice\b[^\n]*\d")
    terminal.press("\t\r")
    terminal.wait_for_text(r"min\.insync\.replicas|min isr|partitions × ")
    terminal.press("m")


def test_records_and_a_record_in_full() -> None:
    # Wide enough for a title that also tells of an open transaction, which the traffic has now and then.
    with kview_on_a_terminal("--simulate", columns=160, rows=40) as terminal:
        open_records(terminal)
        terminal.wait_for_text("No record is read until you ask for it")
        terminal.press("l")
        terminal.wait_for_text(r"50 records, \d+ kB fetched")
        terminal.press("\r")
        terminal.wait_for_text(r"RECORD \S+ offset [\d,]+")
        terminal.press("\x1b")
        terminal.wait_for_text("50 records")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


@pytest.mark.slow  # tests/tui/test_records.py has each screen
def test_no_records() -> None:
    with kview_on_a_terminal("--simulate", "--no-records", columns=120, rows=40) as terminal:
        open_records(terminal)
        terminal.wait_for_text(r"reading records is switched off \(--no-records")
        assert b"fetched" not in terminal.raw


@pytest.mark.slow
def test_three_keys_lead_from_the_headline_to_the_record_at_which_a_real_group_is_stuck(
    real_kafka: RealKafka, tmp_path: Path
) -> None:
    name = f"zz-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(name, [[0, 1, 2]])
    good, cut = (prefixed(7, value) for value in (written(INVOICE, VALUE), written(INVOICE, VALUE)[:20]))
    with (
        RestServer(http(b"{}", "404 Not Found")) as registry,
        closing(consumer(real_kafka.bootstrap_servers, name)) as reader,
        kview_on_a_terminal(
            *("connect", real_kafka.bootstrap_servers, "--schema-registry-url", registry.url),
            *("--no-spark", "--interval", "500ms", "--ignore-group", "[!z]*"),
            environment={"XDG_STATE_HOME": str(tmp_path)},
            columns=120,
            rows=40,
        ) as terminal,
    ):
        registry.by_path["/schemas/ids/7"] = schema(json.dumps(INVOICE))
        sender = producer(real_kafka.bootstrap_servers)
        reader.subscribe([name])

        def reads(value: bytes) -> bool:
            """Read a record, and commit it if it is a good one."""
            deliver(sender, name, [value], 0)
            (message,) = wait_until(lambda: reader.consume(1, timeout=1), "the record")
            if value == good:
                reader.commit(message=message, asynchronous=False)
            terminal.read()
            return bool(reader.consume(1, timeout=0.4))  # nothing: the pace at which records are written

        terminal.wait_for(lambda: not reads(good) and re.search(f"{name} .*●", terminal.text()), "the group")
        for _ in range(PACE):
            reads(good)
        committed = offset(reader, name)
        reads(cut)
        terminal.wait_for_text(rf"▲ {name} stuck")
        terminal.press("5")
        terminal.wait_for_text("lag, last minute +verdict")
        terminal.press("\r")
        first = terminal.wait_for(lambda: since(terminal, name), "the group")
        terminal.wait_for(lambda: since(terminal, name) not in (first, ""), "its screen with another view")
        terminal.press("\r")
        terminal.wait_for_text(rf"committed {committed} ")
        terminal.wait_for_text("its value does not decode: it ends in key, at byte 24")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def since(terminal: PseudoTerminal, name: str) -> str:
    """For how long a group is said to be stuck at its first partition, '' if its screen is not shown."""
    found = re.search(rf"{name}-0 +▲ stuck: no progress for ≥ ([\d ms]+)", terminal.text())
    return found[1].strip() if found else ""


def offset(reader: Consumer, topic: str) -> int:
    """What the group has committed on partition 0 of `topic`."""
    (at,) = reader.committed([TopicPartition(topic, 0)], timeout=10)
    return int(at.offset)
