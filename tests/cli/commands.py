"""Runs `kview` as a person would: its words and its exit code."""

import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import kview.cli

KVIEW = (sys.executable, "-m", "kview")

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

ROOT = Path(__file__).resolve().parents[2]


def run_kview(
    *arguments: str, timeout_s: float = 30, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`kview` with these arguments, without a terminal."""
    return subprocess.run(
        [*KVIEW, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )


def run_here(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The same in this process, for what ends by itself: a process takes most of its time to start."""
    out, err = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in ENDS}
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["kview", *arguments])
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        try:
            with pytest.raises(SystemExit) as end:
                kview.cli.run()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    code = end.value.code
    return subprocess.CompletedProcess(
        arguments, code if isinstance(code, int) else bool(code), out.getvalue(), err.getvalue()
    )
