"""A command and a URL are told of findings, whatever they do."""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import numpy as np
import pytest

from kview.config.hooks import Hook
from kview.config.secret import Secret
from kview.derive.finding_changes import Change, FindingChange
from kview.derive.headline import NO_HEADLINE
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.notices import Notice, NoticeKind
from kview.plain.documents import hook_document
from kview.plain.schema import json_schema
from kview.plain.schema_hook import HookDocument
from kview.run import hooks
from kview.run.hooks import CallFailed, Hooks, call, trial_document
from tests.clocks import SetClock
from tests.waiting import wait_until
from tests.worlds import crash_script, views

DOCUMENT = trial_document("prod")


def command(*words: str, hold_ms: int = 0) -> Hook:
    return Hook(tuple(map(Secret, words)), Secret(""), Severity.WARN, hold_ms)


def url(text: str) -> Hook:
    return Hook((), Secret(text), Severity.WARN, 0)


class Server(BaseHTTPRequestHandler):
    """Keeps what is posted, and answers with the status in the path."""

    posted: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        """Answer."""
        self.posted.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(int(self.path[1:4]))
        self.send_header("Location", "/200")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Server.posted.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()


@pytest.fixture
def running() -> Iterator[Callable[..., Hooks]]:
    made: list[Hooks] = []

    def start(*args: Any, **options: Any) -> Hooks:
        made.append(Hooks(*args, **options))
        made[-1].start()
        return made[-1]

    yield start
    for each in made:
        each.stop()


def test_a_crash_begins_and_ends_at_the_command(tmp_path: Path, running: Callable[..., Hooks]) -> None:
    told, clock = tmp_path / "told", SetClock()
    hold = command("sh", "-c", 'cat >> "$0"', str(told), hold_ms=2_000)
    calls = running(hold, "prod", clock_s=clock, wall_ms=lambda: 1_700_000_000_000)
    ids = set()
    for view in views(crash_script()):
        calls.take(view.snapshot, view)
        clock.now_s += 1
        ids.add(view.snapshot.observation.cluster_id)

    def documents() -> list[dict[str, Any]]:
        return [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []

    def silent() -> list[dict[str, Any]]:
        return [each for each in documents() if each["key"].endswith("/brokers_silent")]

    wait_until(lambda: len(silent()) == 2, "its end is told")
    begins, ends = silent()
    assert (begins["finding"]["kind"], ends["finding"]["kind"]) == ("brokers_silent", "brokers_fenced")
    assert (begins["change"], ends["change"]) == ("begins", "ends")
    assert begins["finding"]["brokers"] and begins["text"].startswith("prod: broker ")
    assert ends["text"].startswith("prod: no longer: broker ") and "; now: " in ends["text"]
    assert begins["severity"] == "risk"
    assert begins["key"] == ends["key"] == f"{ids.pop() or 'prod'}/brokers_silent"
    validator = jsonschema.Draft202012Validator(json_schema())
    for document in documents():
        validator.validate(document)


def test_a_command_has_no_shell_and_its_failure_is_said_without_its_arguments(tmp_path: Path) -> None:
    call(
        command("/bin/sh", "-c", 'test "$1" = "; exit 9" && grep -q "a test of on-finding"', "x", "; exit 9"),
        DOCUMENT,
    )
    with pytest.raises(CallFailed) as failed:
        call(command("/bin/sh", "-c", "echo no such channel >&2; exit 3", "s3cret"), DOCUMENT)
    assert str(failed.value) == "exit code 3: no such channel"
    with pytest.raises(CallFailed, match=r"^/no/such cannot be run: No such file or directory$"):
        call(command("/no/such", "s3cret"), DOCUMENT)
    large = trial_document("prod")
    large.text = 1_000_000 * "x"
    call(command("/bin/true"), large)  # which reads nothing
    call(command("/bin/sh", "-c", 'test "$(wc -c)" -gt 1000000'), large)
    with pytest.raises(CallFailed) as failed:
        call(command("/bin/sh", "-c", "yes | head -c 10000000 >&2; exit 4"), DOCUMENT)
    assert str(failed.value) == "exit code 4: y"


def test_what_a_command_leaves_running_is_left_alone(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    call(command("/bin/sh", "-c", 'sleep 60 & echo $! > "$0"', str(pid)), DOCUMENT)
    child = int(pid.read_text())
    assert not ended(child)
    os.kill(child, signal.SIGKILL)


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_command_that_hangs_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "CALL_WITHIN_S", 0.3)
    pid = tmp_path / "pid"
    with pytest.raises(CallFailed, match="it took more than 0 s"):
        call(command("/bin/sh", "-c", 'sleep 60 & echo $! > "$0"; wait', str(pid)), DOCUMENT)
    child = int(pid.read_text())
    wait_until(lambda: ended(child), "its child has ended")


def test_a_url_gets_the_document_and_no_other_server_does(server: str) -> None:
    call(url(f"{server}/204"), DOCUMENT)
    assert json.loads(Server.posted[0][1])["change"] == "test"
    for status in (302, 307, 404, 500):
        with pytest.raises(CallFailed, match=f"^HTTP status {status}$"):
            call(url(f"{server}/{status}"), DOCUMENT)
    assert len(Server.posted) == 5, "redirects were not followed"


def test_a_url_where_nobody_or_somebody_else_listens() -> None:

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def answers() -> None:
            connection, _ = listening.accept()
            connection.recv(1 << 16)
            connection.sendall(b"\x00\x00\x00\x10garbage\n\n")
            connection.close()

        threading.Thread(target=answers, daemon=True).start()
        with pytest.raises(CallFailed, match="no HTTP"):
            call(url(f"http://127.0.0.1:{port}/s3cret"), DOCUMENT)
    with pytest.raises(CallFailed, match=r"^Connection refused$"):
        call(url(f"http://127.0.0.1:{port}/s3cret"), DOCUMENT)


def test_a_server_that_answers_slowly_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "CALL_WITHIN_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gone = threading.Event()

        def answers() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 ")
                while not gone.wait(0.02):
                    connection.sendall(b" ")

        threading.Thread(target=answers, daemon=True).start()
        try:
            with pytest.raises(CallFailed, match="it took more than 0 s"):
                call(url(f"http://127.0.0.1:{listening.getsockname()[1]}/"), DOCUMENT)
        finally:
            gone.set()


def test_the_end_logs_what_is_in_flight_or_waits_and_ends_the_process(
    tmp_path: Path, running: Callable[..., Hooks]
) -> None:
    notices: list[Notice] = []
    pid = tmp_path / "pid"
    calls = running(command("/bin/sh", "-c", 'echo $$ > "$0"; exec sleep 60', str(pid)), "prod")
    calls.on_notice = notices.append
    for _ in range(3):
        calls._put(DOCUMENT)
    wait_until(lambda: pid.exists() and pid.read_text(), "the first is in flight")
    calls.stop()
    assert [notice.values["reason"] for notice in notices] == ["kview ended"] * 3
    assert ended(int(pid.read_text()))


def test_a_call_that_fails_in_any_way_is_said_and_the_next_one_is_made(
    running: Callable[..., Hooks], monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[Notice] = []

    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(hooks, "call", refuse)
    calls = running(command("/bin/true"), "prod", pauses_s=())
    calls.on_notice = notices.append
    for _ in range(2):
        calls._put(DOCUMENT)
    wait_until(lambda: len(notices) == 2, "both are said")
    assert notices[1].values["reason"] == "MemoryError"


def test_a_cluster_that_is_never_reached_is_a_finding(tmp_path: Path, running: Callable[..., Hooks]) -> None:
    told, clock = tmp_path / "told", SetClock()
    calls = running(command("sh", "-c", 'cat >> "$0"', str(told), hold_ms=2_000), "prod", clock_s=clock)
    for _ in range(3):
        calls.hear(Notice(NoticeKind.SOURCE_NOT_REACHED))
        clock.now_s += 1
    for view in islice(views(crash_script()), 3):
        calls.take(view.snapshot, view)
        clock.now_s += 2

    def documents() -> list[tuple[str, str]]:
        lines = told.read_text().splitlines() if told.exists() else []
        return [(each["change"], each["key"]) for each in map(json.loads, lines)]

    expected = [(change, "prod/no_broker_answers") for change in ("begins", "ends")]
    wait_until(lambda: [each for each in documents() if each in expected] == expected, "it is told")


def test_keys_are_short() -> None:
    def key(group: str) -> str:
        change = FindingChange(
            Change.BEGINS, ("records_lost", group), Finding(FindingKind.RECORDS_LOST, Severity.RISK)
        )
        return hook_document(change, "prod", "", NO_HEADLINE, 0).key

    assert key("billing") == "prod/records_lost/billing"
    long = [key(300 * "x" + end) for end in ("a", "b")]
    assert long[0] != long[1] and {*map(len, long)} == {255}


def test_what_fails_three_times_is_said_and_the_next_one_is_told(
    tmp_path: Path, running: Callable[..., Hooks]
) -> None:
    notices: list[Notice] = []
    fails = command("/bin/sh", "-c", 'echo >> "$0"; exit 1', str(tmp_path / "tries"))
    calls = running(fails, "prod", pauses_s=(0.0, 0.0))
    calls.on_notice = notices.append
    calls._put(DOCUMENT)
    wait_until(lambda: notices, "it is said")
    assert (tmp_path / "tries").read_text().count("\n") == 3
    assert notices[0].values == {"reason": "exit code 1", "text": DOCUMENT.text}


def test_many_that_wait_cost_no_memory_and_hold_up_nobody(running: Callable[..., Hooks]) -> None:
    notices: list[Notice] = []
    calls = Hooks(command("/bin/true"), "prod")  # which has not started
    calls.on_notice = notices.append
    for _ in range(hooks.MOST_WAITING + 7):
        calls._put(DOCUMENT)
    assert [notice.values["reason"] for notice in notices] == ["too many are waiting"] * 7


def test_of_those_that_wait_too_long_the_least_severe_is_left_out() -> None:
    def document(severity: Severity, number: int) -> HookDocument:
        change = FindingChange(
            Change.BEGINS, (), Finding(FindingKind.AT_MIN_ISR, severity, partitions=number)
        )
        return hook_document(change, "prod", "", NO_HEADLINE, 0)

    left_out: list[object] = []
    calls = Hooks(command("/bin/true"), "prod")  # which has not started
    calls.on_notice = lambda notice: left_out.append(notice.values["text"])
    waiting = [document(Severity.WARN, number) for number in (1, 2)]
    waiting += [document(Severity.RISK, number) for number in range(3, hooks.MOST_WAITING + 3)]
    for each in waiting:
        calls._put(each)
    assert left_out == [each.text for each in waiting[:2]]
    calls._put(document(Severity.RISK, 999))
    assert left_out[2:] == [waiting[2].text]


def test_what_is_told_says_where_partitions_are(tmp_path: Path, running: Callable[..., Hooks]) -> None:
    told = tmp_path / "told"
    calls = running(command("sh", "-c", 'cat >> "$0"', str(told)), "prod")
    view = [*islice(views(crash_script()), 85)][-1]
    calls.take(view.snapshot, view)
    wait_until(lambda: told.exists() and "no leader" in told.read_text(), "it is told")
    documents = [json.loads(text) for text in told.read_text().splitlines()]
    (found,) = [each for each in documents if each["finding"]["kind"] == "no_leader"]
    topics, table = found["finding"]["topics"], view.snapshot.partitions
    without = {str(table.topic[row]) for row in np.flatnonzero(table.leader == -1).tolist()}
    assert topics and set(topics) == without
    assert found["text"].endswith(f" ({', '.join(topics[:2])}{' …' if len(topics) > 2 else ''})")
