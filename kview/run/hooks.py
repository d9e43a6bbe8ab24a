"""Reports to a command or a URL the findings that begin, get worse or end, on a thread of its own."""

import logging
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from kview import __version__
from kview.config.hooks import Hook
from kview.derive.finding_changes import Change, FindingChange, FindingChanges
from kview.derive.headline import NO_HEADLINE
from kview.derive.view import View
from kview.model.events import Severity
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
"""The most documents that wait for a call. Then the oldest is not sent."""

ENDS_WITHIN_S = 2.0
"""How long the end of kview waits for a call."""

MOST_SAID = 200
"""The most characters of what a command says about its failure."""

_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)  # what was sent, too


class CallFailed(Exception):
    """Raised for a call that did not succeed. The text says why, and names no argument and no URL."""


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
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="on-finding", daemon=True)
        self.on_notice: Callable[[Notice], None] = lambda notice: None

    def start(self) -> None:
        """Begin to call."""
        self._thread.start()

    def stop(self) -> None:
        """Make no further attempt. What is not sent by then is logged."""
        self._ending.set()
        self._put(None)
        self._thread.join(ENDS_WITHIN_S)
        with suppress(queue.Empty):
            while True:
                self._not_sent(self._waiting.get_nowait(), "kview ended")

    def take(self, snapshot: Snapshot, view: View | None) -> None:
        """Look at the findings of a view."""
        if view is None:
            return
        for change in self._changes.step(view.headline.findings, int(self._clock_s() * 1000)):
            cluster_id = snapshot.observation.cluster_id
            self._put(hook_document(change, self._name, cluster_id, view.headline, self._wall_ms()))

    def _put(self, document: HookDocument | None) -> None:
        while True:
            try:
                self._waiting.put_nowait(document)
                return
            except queue.Full:
                with suppress(queue.Empty):
                    self._not_sent(self._waiting.get_nowait(), "too many are waiting")

    def _run(self) -> None:
        while (document := self._waiting.get()) is not None:
            self._send(document)

    def _send(self, document: HookDocument) -> None:
        pauses = iter(self._pauses_s)
        while True:
            began_s = time.monotonic()
            try:
                call(self._hook, document)
            except CallFailed as failure:
                pause_s = next(pauses, None)
                if pause_s is None or self._ending.wait(pause_s):
                    self._not_sent(document, str(failure))
                    return
                _log.warning("on-finding %s failed (%s); trying again", self._hook.shown, failure)
            else:
                took_s = time.monotonic() - began_s
                _log.info("on-finding %s was sent in %.1f s: %s", self._hook.shown, took_s, document.text)
                return

    def _not_sent(self, document: HookDocument | None, reason: str) -> None:
        if document is not None:
            _log.error("on-finding %s was not sent (%s): %s", self._hook.shown, reason, document.text)
            self.on_notice(Notice(NoticeKind.HOOK_FAILED, {"reason": reason, "text": document.text}))


def call(hook: Hook, document: HookDocument) -> None:
    """Hand a document to a hook, and wait for its end. Raises CallFailed."""
    sent = f"{json_line(document)}\n".encode()
    if hook.command:
        _run(tuple(word.reveal() for word in hook.command), sent)
    else:
        _post(hook.url.reveal(), sent)


def trial_document(name: str) -> HookDocument:
    """Return what a profile of this name gets when somebody tries its hook."""
    change = FindingChange(Change.TEST, Finding(FindingKind.NOTHING_KNOWN, Severity.CALM))
    document = hook_document(change, name, "", NO_HEADLINE, time.time_ns() // 1_000_000)
    document.text = f"{name}: a test of on-finding; nothing has happened"
    return document


def _run(command: tuple[str, ...], sent: bytes) -> None:
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        except OSError as error:
            raise CallFailed(f"{command[0]} cannot be run: {error.strerror}") from None
        try:
            with suppress(BrokenPipeError):
                process.communicate(sent, CALL_WITHIN_S)
            code = process.wait(CALL_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise CallFailed(f"it took more than {CALL_WITHIN_S:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code:
            said.seek(0)
            words = said.read(4 * MOST_SAID).decode("utf-8", "replace").strip().partition("\n")[0][:MOST_SAID]
            raise CallFailed(f"exit code {code}{f': {words}' if words else ''}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an answer like any other: a document goes to no other server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(url: str, sent: bytes) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": f"kview/{__version__}"}
    opener = urllib.request.build_opener(_NoRedirects())
    try:
        with opener.open(urllib.request.Request(url, sent, headers), timeout=CALL_WITHIN_S) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
    except urllib.error.URLError as error:
        why = error.reason
        raise CallFailed((why.strerror if isinstance(why, OSError) else None) or str(why)) from None
    except (OSError, ValueError) as error:
        raise CallFailed(str(error) or type(error).__name__) from None
    except Exception as error:
        raise CallFailed(f"no HTTP: {type(error).__name__}") from None
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise CallFailed(f"HTTP status {status}")
