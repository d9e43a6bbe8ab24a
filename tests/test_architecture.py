"""The rules of the house: who imports whom, types, style, and what a short command must not load."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL_TIMEOUT_S = 600
"""A cold mypy on a loaded two-core machine takes minutes; a hang must still end."""


def must_succeed(*command: str) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(done.stdout, pytrace=False)


def test_a_room_imports_only_rooms_below_it() -> None:
    lint = "from importlinter.cli import lint_imports_command as lint; lint()"
    must_succeed(sys.executable, "-c", lint, "--no-cache")


def test_ruff_has_nothing_to_say() -> None:
    must_succeed(sys.executable, "-m", "ruff", "check", "--output-format=concise", "kview", "tests")


@pytest.mark.slow  # mypy takes minutes where it has read nothing before, and ruff finds much of it
def test_types_are_strict_and_right() -> None:
    must_succeed(sys.executable, "-m", "mypy", "--no-error-summary")


def test_help_loads_neither_spark_nor_arrow_nor_textual() -> None:
    code = (
        "import os, sys\n"
        "from kview.cli import main\n"
        "sys.argv = ['kview', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "heavy = {'pyspark', 'pyarrow', 'textual', 'kafka.protocol', 'numpy'} & set(sys.modules)\n"
        "print(f'loaded: {sorted(heavy)}', flush=True)\n"
        "os._exit(bool(heavy))\n"
    )
    must_succeed(sys.executable, "-c", code)
