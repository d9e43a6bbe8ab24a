"""A command and a URL are told of findings, whatever they do."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest

from kview.config.hooks import Hook
from kview.config.secret import Secret
from kview.model.events import Severity
from kview.model.notices import Notice
from kview.plain.schema import json_schema
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
        return [each for each in documents() if each["finding"]["kind"] == "brokers_silent"]

    wait_until(lambda: len(silent()) == 2, "its end is told")
    begins, ends = silent()
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
    call(command("/bin/true"), DOCUMENT)  # which reads nothing


def test_a_command_that_hangs_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "CALL_WITHIN_S", 0.3)
    pid = tmp_path / "pid"
    with pytest.raises(CallFailed, match="it took more than 0 s"):
        call(command("/bin/sh", "-c", 'sleep 60 & echo $! > "$0"; wait', str(pid)), DOCUMENT)
    child = int(pid.read_text())

    def ended() -> bool:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return True
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    wait_until(ended, "its child has ended")


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
