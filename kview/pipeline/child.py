"""The process of the live job: `python -m kview.pipeline.child`.

This process ends when the process that started it ends. Its JVM ends with it.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path

from msgspec.json import Decoder

from kview.config.children import exit_error
from kview.config.messages import encode, messages
from kview.errors import ErrorFacts, ErrorKind, KviewError


def main() -> None:
    """Run until the other side closes the control socket."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--control-fd", type=int, required=True)
    flags.add_argument("--recording", type=Path, required=True)
    flags.add_argument("--after", type=int, required=True)
    flags.add_argument("--scratch", type=Path, required=True)
    given = flags.parse_args()
    # Ignore signals that a terminal sends to all its processes. They are meant for kview, which ends this
    # process when it is ready.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    job = Job(socket.socket(fileno=given.control_fd), given.scratch)
    try:
        job.run(given.recording, given.after)
    except KviewError as error:
        job.end(error)
    except Exception as error:
        job.end(job.how_java_ended() or _cause(error, given.recording, given.scratch), error)


class Job:
    """The job and its JVM, which end together."""

    def __init__(self, control: socket.socket, scratch: Path) -> None:
        self._control = control
        self._scratch = scratch
        self._jvm: subprocess.Popen[bytes] | None = None
        self._ending = threading.Lock()
        self._sending = threading.Lock()
        self._watched = threading.Event()
        """Whether somebody looks at the roll-ups."""
        threading.Thread(target=self._watch_parent, name="parent", daemon=True).start()

    def run(self, recording: Path, after: int) -> None:
        """Start the JVM and the job, and wait until they end, which is always an error."""
        from kview.pipeline.jvm import Gateway, choose_java

        # Because of the lock, `end` waits until the JVM is known, and then ends it as well.
        with self._ending:
            gateway = Gateway(choose_java(os.environ), self._scratch)
            self._jvm = gateway.process
        threading.Thread(target=self._watch_jvm, name="jvm", daemon=True).start()
        # These imports run while Java starts.
        import pyarrow as pa

        from kview.pipeline.live import run
        from kview.pipeline.session import LIVE, LOOPBACK, new_context
        from kview.recording.manifest import read_manifest

        read_manifest(recording)
        gateway.connect()  # On a busy machine a start takes minutes, and another start takes more.

        def send_rollups(table: pa.Table) -> None:
            nonlocal after
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            self._send(sink.getvalue().to_pybytes())
            after = table["last_sequence"][0].as_py()

        context = new_context("kview", "local[2]", LOOPBACK, self._scratch, LIVE)
        while True:
            try:
                run(context, recording, after, send_rollups, self._watched)
            except Exception as error:
                if LATE_WORKER not in str(error):
                    raise
                print("a process of Spark's took long to start; the job goes on", file=sys.stderr, flush=True)

    def end(self, why: KviewError | None = None, error: Exception | None = None) -> None:
        """End the JVM and this process at once, and do not return. The first call reports the reason."""
        with self._ending:
            if error is not None:
                traceback.print_exception(error)
            if self._jvm is not None:
                self._jvm.kill()
            if why is not None:
                with contextlib.suppress(OSError):
                    self._send(why.facts)
            shutil.rmtree(self._scratch, ignore_errors=True)
            sys.stderr.flush()
            os._exit(0 if why is None else 1)

    def _send(self, message: bytes | ErrorFacts) -> None:
        # If Java ends while roll-ups are being sent, the reason has to come after them, not in between.
        with self._sending:
            self._control.sendall(encode(message))

    def _watch_parent(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for is_watched in messages(self._control, Decoder(bool)):
                if is_watched:
                    self._watched.set()
                else:
                    self._watched.clear()
        self.end()

    def _watch_jvm(self) -> None:
        assert self._jvm is not None
        self._jvm.wait()
        self.end(self.how_java_ended())

    def how_java_ended(self) -> KviewError | None:
        """Return how Java ended, or None if it still runs.

        This waits for up to GONE_WITHIN_S, because a broken connection can be noticed before Java's exit
        status is known.
        """
        if self._jvm is None:
            return None
        try:
            code = self._jvm.wait(GONE_WITHIN_S)
        except subprocess.TimeoutExpired:
            return None
        if code == OUT_OF_MEMORY:
            return KviewError(ErrorKind.JAVA_OUT_OF_MEMORY)
        return exit_error(code, ErrorKind.JAVA_KILLED, ErrorKind.JAVA_ENDED)


LATE_WORKER = "Timed out while waiting for the Python worker to connect back"
"""What Spark says of a process for Python that took more than ten seconds to start. No setting makes it wait
longer; on a busy machine that happens, and the JVM is as good as before."""

GONE_WITHIN_S = 0.5
"""Longest time between the break of a connection and the end of the process on its other side."""

OUT_OF_MEMORY = 3
"""Java's exit status with -XX:+ExitOnOutOfMemoryError."""

MAX_WORDS = 160
"""Limit of characters of an error's text, because some texts go on for pages. The log file has the full
text."""


LITTLE_ROOM_BYTES = 1 << 20
"""A disk with less free space than this is full for Spark."""


def _cause(error: Exception, recording: Path, scratch: Path) -> KviewError:
    """Return why the job failed.

    Errors in Spark's other processes arrive here as text only. So the likely causes, a missing recording and
    a full disk, are checked again.
    """
    from kview.recording.manifest import read_manifest

    try:
        read_manifest(recording)
    except KviewError as gone:
        return gone
    if shutil.disk_usage(scratch).free < LITTLE_ROOM_BYTES:
        return KviewError(ErrorKind.SPARK_DISK_FULL, folder=str(scratch.parent))
    return KviewError(ErrorKind.SPARK_FAILED, cause=_in_short(error))


def _in_short(error: Exception) -> str:
    """Return an error's cause in one line: of a task that failed, what its process said, not what Java says
    of it."""
    _, raised, traceback = str(error).partition("Traceback (most recent call last):")
    lines = traceback.partition("\n\n")[0].strip().splitlines() if raised else str(error).strip().splitlines()
    if raised and lines:
        return lines[-1].strip()[:MAX_WORDS]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:MAX_WORDS]


if __name__ == "__main__":
    main()
