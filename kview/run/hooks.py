"""Reports to a command or a URL the findings that begin, get worse or end, on a thread of its own."""

import http.client
import logging
import os
import queue
import selectors
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from kview import __version__
from kview.config.hooks import Hook
from kview.derive.finding_changes import Change, FindingChange, FindingChanges
from kview.derive.headline import NO_HEADLINE
from kview.derive.view import Headline, View
from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.plain.documents import hook_document, json_line
from kview.plain.schema_hook import HookDocument

CALL_WITHIN_S = 30.0
"""How long a call may take. A command that takes longer is killed, with what it has started."""

PAUSES_S = (5.0, 30.0)
"""How long is waited after a call that failed, before the next attempt. After the last there is none."""

MOST_WAITING = 100
"""The most documents that wait for a call. Then the least severe is not sent, and of these the oldest."""

ENDS_WITHIN_S = 0.5
"""How long the end of kview waits for a call before it ends that, and after it."""

POLL_S = 0.05
"""How often a call looks whether it must end."""

MOST_SAID = 200
"""The most characters of what a command says about its failure."""

_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)  # what was sent, too


class CallFailed(Exception):
    """Raised for a call that did not succeed. The text says why, with the first line that a command wrote to
    its standard error, and otherwise names no argument and no URL."""


class Hooks:
    """Compares the findings of each view, and calls what a profile names.

    `take` may be called from any thread and never waits. `on_notice` gets what was not sent.
    """

    def __init__(
        self,
        hook: Hook,
        name: str,
        clock_s: Callable[[], float] = time.monotonic,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        pauses_s: tuple[float, ...] = PAUSES_S,
    ) -> None:
        """`name` is the profile's."""
        self._hook, self._name = hook, name
        self._clock_s, self._wall_ms, self._pauses_s = clock_s, wall_ms, pauses_s
        self._changes = FindingChanges(hook.severity, hook.hold_ms)
        self._waiting: queue.Queue[HookDocument | None] = queue.Queue(MOST_WAITING)
        self._in_flight: HookDocument | None = None
        self._unreached_ms = 0
        self._ending, self._killing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="on-finding", daemon=True)
        self.on_notice: Callable[[Notice], None] = lambda notice: None

    def start(self) -> None:
        """Begin to call."""
        self._thread.start()

    def stop(self) -> None:
        """Make no further call, and end the present one if it does not end soon. What is not sent by then is
        logged."""
        self._ending.set()
        with suppress(queue.Empty):
            while True:
                self._not_sent(self._waiting.get_nowait(), "kview ended")
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(ENDS_WITHIN_S)
        self._killing.set()
        self._thread.join(ENDS_WITHIN_S)
        if self._thread.is_alive():
            self._not_sent(self._in_flight, "kview ended")

    def take(self, snapshot: Snapshot, view: View | None) -> None:
        """Look at the findings of a view."""
        if view is not None:
            self._look(view.headline.findings, snapshot.observation.cluster_id, view.headline)

    def hear(self, notice: Notice) -> None:
        """Look at a notice that comes instead of a view: that a cluster was never reached."""
        if notice.kind is NoticeKind.SOURCE_NOT_REACHED:
            self._unreached_ms = self._unreached_ms or self._wall_ms()
            found = (Finding(FindingKind.NO_BROKER_ANSWERS, Severity.RISK, since_ms=self._unreached_ms),)
            self._look(found, "", replace(NO_HEADLINE, severity=Severity.RISK, findings=found))

    def _look(self, findings: Sequence[Finding], cluster_id: str, head: Headline) -> None:
        for change in self._changes.step(findings, int(self._clock_s() * 1000)):
            self._put(hook_document(change, self._name, cluster_id, head, self._wall_ms()))

    def _put(self, document: HookDocument) -> None:
        while True:
            try:
                self._waiting.put_nowait(document)
                return
            except queue.Full:
                self._not_sent(self._take_least(), "too many are waiting")

    def _take_least(self) -> HookDocument | None:
        """Take the least severe of the documents that wait, and of these the oldest."""
        with self._waiting.mutex:
            waiting = [document for document in self._waiting.queue if document is not None]
            ranked = [SEVERITY_ORDER.index(document.finding.severity) for document in waiting]
            if not ranked:
                return None
            least: HookDocument = waiting[ranked.index(max(ranked))]
            self._waiting.queue.remove(least)
            return least

    def _run(self) -> None:
        while (document := self._waiting.get()) is not None:
            self._in_flight = document
            self._send(document)
            self._in_flight = None

    def _send(self, document: HookDocument) -> None:
        pauses = iter(self._pauses_s)
        while True:
            if self._ending.is_set():
                self._not_sent(document, "kview ended")
                return
            began_s = time.monotonic()
            try:
                call(self._hook, document, self._killing)
            except Exception as error:
                reason = str(error) if isinstance(error, CallFailed) else type(error).__name__
                pause_s = next(pauses, None)
                if pause_s is None or self._ending.wait(pause_s):
                    self._not_sent(document, reason)
                    return
                _log.warning("on-finding %s failed (%s); trying again", self._hook.shown, reason)
            else:
                took_s = time.monotonic() - began_s
                _log.info("on-finding %s was sent in %.1f s: %s", self._hook.shown, took_s, document.text)
                return

    def _not_sent(self, document: HookDocument | None, reason: str) -> None:
        if document is not None:
            _log.error("on-finding %s was not sent (%s): %s", self._hook.shown, reason, document.text)
            self.on_notice(Notice(NoticeKind.HOOK_FAILED, {"reason": reason, "text": document.text}))


def call(hook: Hook, document: HookDocument, ending: threading.Event | None = None) -> None:
    """Hand a document to a hook, and wait for its end. Raises CallFailed, also soon after `ending` is set."""
    sent = f"{json_line(document)}\n".encode()
    limit = _Limit(ending or threading.Event())
    if hook.command:
        _run(tuple(word.reveal() for word in hook.command), sent, limit)
    else:
        _post(hook.url.reveal(), sent, limit)


class _Limit:
    """When a call has to end."""

    def __init__(self, ending: threading.Event) -> None:
        self._ending, self._until_s = ending, time.monotonic() + CALL_WITHIN_S

    def reason(self) -> str:
        """Return why the call has to end now, '' if it need not."""
        if self._ending.is_set():
            return "kview ended"
        return f"it took more than {CALL_WITHIN_S:.0f} s" if time.monotonic() > self._until_s else ""


def trial_document(name: str) -> HookDocument:
    """Return what a profile of this name gets when somebody tries its hook."""
    change = FindingChange(
        Change.TEST, (FindingKind.NOTHING_KNOWN.value,), Finding(FindingKind.NOTHING_KNOWN, Severity.CALM)
    )
    document = hook_document(change, name, "", NO_HEADLINE, time.time_ns() // 1_000_000)
    document.text = f"{name}: a test of on-finding; nothing has happened"
    return document


def _run(command: tuple[str, ...], sent: bytes, limit: _Limit) -> None:
    try:
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise CallFailed(f"{command[0]} cannot be run: {error.strerror}") from None
    try:
        said = _said(process, sent, limit)
    except OSError as error:
        raise CallFailed(error.strerror or type(error).__name__) from None
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):  # the latter of sudo's
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_WITHIN_S)
    if process.returncode:
        words = said.decode("utf-8", "replace").strip().partition("\n")[0][:MOST_SAID]
        raise CallFailed(f"exit code {process.returncode}{f': {words}' if words else ''}")


def _said(process: subprocess.Popen[bytes], sent: bytes, limit: _Limit) -> bytes:
    """Hand `sent` to a process, wait for its end, and return the beginning of its standard error.

    What it has started may hold its pipes open for longer. Raises CallFailed.
    """
    assert process.stdin is not None and process.stderr is not None
    left, said, most = memoryview(sent), b"", 4 * MOST_SAID
    with process.stdin as stdin, process.stderr as stderr, selectors.DefaultSelector() as ready:
        for pipe, event in ((stdin, selectors.EVENT_WRITE), (stderr, selectors.EVENT_READ)):
            os.set_blocking(pipe.fileno(), False)
            ready.register(pipe, event)
        while process.poll() is None:
            if reason := limit.reason():
                raise CallFailed(reason)
            if not ready.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
                continue
            for key, _ in ready.select(POLL_S):
                if key.fileobj is stdin:
                    try:
                        left = left[os.write(stdin.fileno(), left) :]
                    except BrokenPipeError:  # it does not read all of it
                        left = left[:0]
                    if not left:
                        ready.unregister(stdin)
                        stdin.close()
                elif part := os.read(stderr.fileno(), 1 << 16):
                    said += part[: most - len(said)]
                else:
                    ready.unregister(stderr)
        with suppress(BlockingIOError):
            while len(said) < most and (part := os.read(stderr.fileno(), most - len(said))):
                said += part
    return said


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an answer like any other: a document goes to no other server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Connections(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Keeps the connection, so that it can be ended however slowly a server answers."""

    def __init__(self) -> None:
        super().__init__()
        self.connection: http.client.HTTPConnection | None = None

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> Any:
        """Open a connection."""

        def kept(*args: Any, **more: Any) -> http.client.HTTPConnection:
            self.connection = http_class(*args, **more)
            return self.connection

        return super().do_open(kept, req, **options)

    def end(self) -> None:
        """End the connection."""
        if self.connection is not None and self.connection.sock is not None:
            with suppress(OSError):
                self.connection.sock.shutdown(socket.SHUT_RDWR)


def _post(url: str, sent: bytes, limit: _Limit) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": f"kview/{__version__}"}
    connections, done = _Connections(), threading.Event()

    def watch() -> None:
        while not done.wait(POLL_S):
            if limit.reason():
                connections.end()

    threading.Thread(target=watch, name="on-finding-limit", daemon=True).start()
    opener = urllib.request.build_opener(_NoRedirects(), connections)
    try:
        with opener.open(urllib.request.Request(url, sent, headers), timeout=CALL_WITHIN_S) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
    except Exception as error:
        raise CallFailed(limit.reason() or _why(error)) from None
    finally:
        done.set()
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise CallFailed(f"HTTP status {status}")


def _why(error: Exception) -> str:
    """Return why a server gave no answer."""
    if isinstance(error, urllib.error.URLError):
        why = error.reason
        return (why.strerror if isinstance(why, OSError) else None) or str(why)
    if isinstance(error, (OSError, ValueError)):
        return str(error) or type(error).__name__
    return f"no HTTP: {type(error).__name__}"
