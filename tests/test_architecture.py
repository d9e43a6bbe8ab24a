"""The rules of the house: who imports whom, types, style, and what a short command must not load."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL_TIMEOUT_S = 600
"""A cold mypy on a loaded two-core machine takes minutes; a hang must still end."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        check=False,
    )


def test_a_room_imports_only_rooms_below_it() -> None:
    done = run(sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()")
    assert done.returncode == 0, done.stdout


def test_ruff_has_nothing_to_say() -> None:
    done = run(sys.executable, "-m", "ruff", "check", "--output-format=concise", "kview", "tests")
    assert done.returncode == 0, done.stdout


def test_types_are_strict_and_right() -> None:
    done = run(sys.executable, "-m", "mypy", "--no-error-summary")
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not (ROOT / "kview" / "cli").is_dir(), reason="there is no command yet")
def test_help_loads_neither_spark_nor_arrow_nor_textual() -> None:
    code = (
        "import sys\n"
        "from kview.cli import main\n"
        "sys.argv = ['kview', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "heavy = {'pyspark', 'pyarrow', 'textual', 'kafka', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {sorted(heavy)}' if heavy else 0)\n"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stdout
