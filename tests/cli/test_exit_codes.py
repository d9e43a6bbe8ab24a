"""Every exit code that `kview --help` lists, by a run that ends with it."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kview.cli.group import EXIT_CODES
from tests.cli.commands import KVIEW, ROOT, run_kview

ONE_BROKER = ("--simulate", "--brokers", "1", "--topic", "a:1:1", "--no-traffic")


def test_the_help_lists_them() -> None:
    section = run_kview("--help").stdout.partition("Exit codes:")[2]
    assert (
        re.findall(r"^  (\S+) ", section, re.MULTILINE)
        == ["0", "1", "2", "3", "4", "70", "128+N"]
        == [*EXIT_CODES]
    )


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "arguments",
    [["schema"], ["--help"], ["--version"], [*ONE_BROKER, "--once"], [*ONE_BROKER, "--format", "json"]],
)
def test_1_an_output_that_cannot_be_written_is_a_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*KVIEW, *arguments],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.stderr == (
        "kview: cannot write to standard output (No space left on device):"
        " check where it goes and, if that is a file, the free space\n"
    )
    assert done.returncode == 1


def test_0_2_and_3() -> None:
    assert run_kview("schema").returncode == 0
    assert run_kview("--fly").returncode == 2
    assert run_kview("connect", "127.0.0.1:1", "--once").returncode == 3


def test_70_is_a_bug_with_its_traceback_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise RuntimeError('\\x1b[31mbroken')\n")
    done = run_kview("schema", environment={"PYTHONPATH": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)})
    assert done.returncode == 70
    assert done.stderr.startswith("kview: bug: RuntimeError: ?[31mbroken; the traceback is in ")
    assert "RuntimeError" in next(tmp_path.rglob("kview.log")).read_text()


def test_128_and_the_number_of_a_signal() -> None:
    script = '"$@" & kview=$!; read go; kill -TERM $kview; wait $kview; echo "code $?"'
    with subprocess.Popen(
        ["sh", "-c", script, "sh", *KVIEW, *ONE_BROKER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        assert shell.stdout.readline().startswith("kview ")
        shell.stdin.write("go\n")
        shell.stdin.close()
        assert shell.stdout.read().splitlines()[-1] == f"code {128 + signal.SIGTERM}"


def test_a_thread_that_is_in_arrow_changes_no_exit_code() -> None:
    """As one that uploads a recording to a slow store may be."""
    script = (
        "import io, sys, threading, time, pyarrow\n"
        "class Slow(io.RawIOBase):\n"
        "    def writable(self):\n"
        "        return True\n"
        "    def write(self, data):\n"
        "        time.sleep(0.001)\n"
        "        return len(data)\n"
        "def upload():\n"
        "    writing.set()\n"
        "    while True:\n"
        "        pyarrow.PythonFile(Slow(), 'w').write(b'x')\n"
        "writing = threading.Event()\n"
        "threading.Thread(target=upload, daemon=True).start()\n"
        "writing.wait()\n"
        "from kview.cli import main\n"
        "sys.argv = ['kview', 'schema']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("}\n")
