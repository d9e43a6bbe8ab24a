"""`kview report` as a command, in a process of its own, or in this one."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kview.cli.group import kview
from kview.errors import KviewError
from kview.language.errors import sentence
from tests.served import kview_command, kview_environment

DONE_WITHIN_S = 900


def start(*arguments: str | Path, state: Path | None = None, **environment: str) -> subprocess.Popen[str]:
    """Start `kview report`. `state` is the folder of its log file."""
    if state is not None:
        environment["XDG_STATE_HOME"] = str(state)
    return subprocess.Popen(
        kview_command("report", *map(str, arguments)),
        env={**kview_environment(), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a command to end. Returns its exit code and what it printed on both streams."""
    try:
        output, errors = process.communicate(timeout=DONE_WITHIN_S)
    finally:
        process.kill()
        process.wait()
    return process.returncode, output, errors


def document(process: subprocess.Popen[str]) -> Any:
    """Return the JSON document that a command printed, which has to succeed."""
    code, output, errors = ended(process)
    assert code == 0, errors
    return json.loads(output)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those that the command handles."""


def refused(*arguments: str | Path) -> tuple[int, str, str]:
    """Give the command something that it refuses before it starts Java. Returns its exit code and what it
    prints on both streams."""
    before = [signal.getsignal(number) for number in SIGNALS]
    try:
        made = CliRunner().invoke(kview, ["report", *map(str, arguments)], prog_name="kview")
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
    error = made.exception
    if isinstance(error, KviewError):
        return error.exit_code, made.stdout, f"{made.stderr}kview: {sentence(error)}\n"
    assert error is None or isinstance(error, SystemExit), error
    return made.exit_code, made.stdout, made.stderr
