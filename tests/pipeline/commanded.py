"""`kview report` as a command, in a process of its own, or in this one."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.commands import run_here
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


def refused(*arguments: str | Path) -> tuple[int, str, str]:
    """Give the command something that it refuses before it starts Java. Returns its exit code and what it
    prints on both streams."""
    done = run_here("report", *map(str, arguments))
    return done.returncode, done.stdout, done.stderr
