"""Runs `kview` as a person would: a process of its own, its words and its exit code."""

import os
import subprocess
import sys
from pathlib import Path

KVIEW = (sys.executable, "-m", "kview")

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
