"""Groups whose ids carry escape sequences, created by real clients and read where a person reads them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.cli.commands import run_here
from tests.e2e.pseudo_terminal import kview_on_a_terminal
from tests.serve.clients import kafka_python_consumer
from tests.served import Served

GROUPS = (
    "a\x1b[2J\x1b]0;owned\x07",
    "b\nb 99 lag",
    "c\x9b31mred",
    "d\u202eesrever\u2066",
    "e\u200b\ufeff\r\x85\u2028e",
    "f" + "\u0301" * 30,
)

PRINTABLE = ("a?[2J?]0;owned?", "b?b 99 lag", "c?31mred", "d?esrever?", "e?????e")


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A cluster on which each of GROUPS has committed an offset."""
    with Served("--brokers", "3", "--topic", "invoice:1:3", "--no-traffic") as cluster:
        for group in GROUPS:
            client = kafka_python_consumer(cluster.bootstrap, group)
            client.commit({TopicPartition("invoice", 0): OffsetAndMetadata(0, "", -1)})
            client.close()
        yield cluster.bootstrap


def test_json_gives_every_id_back(bootstrap: str) -> None:
    done = run_here("connect", bootstrap, "--once", "--format", "json")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.rstrip("\n").split("\n")
    assert line.isprintable()
    assert sorted(group["group"] for group in json.loads(line)["groups"]) == sorted(GROUPS)


def test_text_has_one_line_per_group(bootstrap: str) -> None:
    done = run_here("connect", bootstrap, "--once")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert all(line.isprintable() for line in lines)
    rows = lines[next(n for n, line in enumerate(lines) if line.startswith("  GROUP")) + 1 :]
    for name in PRINTABLE:
        (row,) = (row for row in rows if row.startswith(f"  {name} "))
        assert " simple (only commits) " in row


@pytest.mark.slow  # tests/tui/test_hostile_names.py has each screen
def test_the_screen_keeps_its_rows_and_the_terminal_its_title(bootstrap: str, tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    with kview_on_a_terminal("connect", bootstrap, environment=environment) as terminal:
        terminal.wait_for_text("invoice")
        terminal.press("5")
        terminal.wait_for_text("write/s")
        for name in PRINTABLE:
            terminal.wait_for(lambda name=name: any(f"{name} " in line for line in terminal.lines()), name)  # type: ignore[misc]
        assert "owned" not in terminal.screen.title
        raw = bytes(terminal.raw)
        for evil in ("\x1b]0;owned", "owned\x07", "\u202e", "\u2066", "\x9b", "\u200b", "\u0301" * 3):
            assert evil.encode() not in raw, repr(evil)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    for log in tmp_path.rglob("kview.log*"):
        assert all(line.isprintable() for line in log.read_text().split("\n"))
