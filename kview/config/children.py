"""The child processes that kview starts: their environment, their errors and their end."""

import contextlib
import os
import signal
import subprocess
from logging import Logger
from pathlib import Path

import kview


def child_environment() -> dict[str, str]:
    """Return this process's environment, extended so that a child imports the same kview, from any working
    folder.
    """
    ours = str(Path(kview.__file__).resolve().parent.parent)
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ours}{os.pathsep}{others}" if others else ours}


def ended(process: subprocess.Popen[bytes], within_s: float) -> int:
    """Wait for a child that was asked to end, kill it after `within_s`, and return its exit code.

    The child leads a process group. If it was killed, its JVM may live on, because a JVM notices the end of
    its parent only once it has started. So the rest of the group is killed, too.
    """
    try:
        code = process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return code


def log_errors(process: subprocess.Popen[bytes], log: Logger) -> None:
    """Log what a child writes to standard error, until it ends."""
    assert process.stderr is not None
    for line in process.stderr:
        log.warning("%s", line.decode(errors="replace").rstrip())
