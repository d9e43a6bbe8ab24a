"""Bad use: exit code 2, one sentence that says what was wrong and what to do, no traceback, nothing on
standard output."""

import subprocess

import pytest

import kview
from tests.cli.commands import KVIEW, ROOT, run_here, run_kview


def in_shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which "$@" is `kview`."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *KVIEW], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["connect"], "there are no profiles in "),
        (["connect", "a:1", "--map", "kafka:9092"], "'kafka:9092' is not a pair of addresses"),
        (["connect", "a:1", "--map", "kafka=b:1"], "the mapping 'kafka=b:1' is not a pair of addresses"),
        (["connect", "a:1", "--command-config", "/nowhere"], "/nowhere cannot be read (No such file"),
        (["connect", ""], "contains an empty bootstrap server: write HOST:PORT"),
        (["connect", "localhost"], "'localhost' has no port: write HOST:PORT, such as localhost:9092"),
        (["connect", "localhost:"], "'' in 'localhost:' is not a valid port"),
        (
            ["connect", "localhost:kafka"],
            "'kafka' in 'localhost:kafka' is not a valid port: give a number from 1 to 65535",
        ),
        (["connect", "localhost:0"], "'0' in 'localhost:0' is not a valid port"),
        (["connect", "localhost:65536"], "'65536' in 'localhost:65536' is not a valid port"),
        (["connect", ":9092"], "':9092' has no valid host name"),
        (["connect", "a:1,,b:2"], "'a:1,,b:2' contains an empty bootstrap server"),
        (["connect", "::1:9092"], "put an IPv6 address in brackets: [::1]:9092"),
        (["connect", "[::1]"], "'[::1]' has no port"),
        (["connect", "http://localhost:9092"], "is a URL, not a bootstrap server"),
        (["connect", "a:1", "--interval", "soon"], "'soon' is not a valid duration: write 500ms, 1s or 2m"),
        (["connect", "a:1", "--interval", "1ms"], "1ms is not between 100ms and 10m"),
        (["connect", "a:1", "--interval", "-1s"], "'-1s' is not a valid duration"),
        (["connect", "a:1", "--format", "xml"], "'xml' is not one of 'text', 'json'"),
        (
            ["connect", "a:1", "--theme", "drak"],
            "no theme 'drak'; available themes: colour-blind, dark,",
        ),
        (["connect", "a:1", "--record", ""], "Invalid value for '--record': it is empty: give the folder"),
        (["connect", f"a:{'1' * 5000}"], "is not a valid port"),
        (["replay", ""], "'' is not a kview recording"),
        (["replay", "a\x1b[31m\nb"], "'a?[31m?b' is not a kview recording"),
        (["serve", "--control-fd", "-1"], "--control-fd -1 is not a socket"),
        (["serve", "--control-fd", "9" * 20], "is not a socket"),
        (["twin", "a:1", "b:2"], "Got unexpected extra argument (b:2)"),
        (["connect", "a:1", "b:2", "a:1"], "a:1 is given twice"),
        (["check", "a:1", "--all"], "--all stands for the names of all profiles"),
        (["connect", "a:1", "b"], "b: 'b' has no port: write HOST:PORT"),
        (["connect", "--all"], "there are no profiles in "),
        (["fly"], "No such command 'fly'"),
        (["--fly"], "No such option '--fly'"),
        (["--once"], "--once alone does nothing: use it with --simulate, or put it after connect"),
        (
            ["--brokers", "3"],
            "--brokers alone does nothing: use it with --simulate, or put it after check, or put it after"
            " serve",
        ),
        (["--once", "connect", "a:1"], "put --once after connect"),
        (
            ["--brokers", "3", "connect", "a:1"],
            "connect has no --brokers: use it with --simulate, check or serve",
        ),
        (
            ["--ascii", "schema"],
            "schema has no --ascii: use it with --simulate, check, connect, demo, records, replay, report or",
        ),
        (["--simulate", "connect", "a:1"], "leave out --simulate or connect"),
    ],
)
def test_bad_use_is_said_in_a_sentence(arguments: list[str], sentence: str) -> None:
    done = run_here(*arguments)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_without_anything_the_help_is_shown_as_bad_use() -> None:
    done = run_here()
    assert done.returncode == 2
    assert "Usage: kview" in done.stderr


def test_version() -> None:
    done = run_here("--version")
    assert (done.returncode, done.stdout) == (0, f"kview, version {kview.__version__}\n")


@pytest.mark.parametrize("command", ["check", "connect", "serve"])
def test_every_command_in_the_help_has_a_help_of_its_own(command: str) -> None:
    whole, own = run_here("--help"), run_here(command, "--help")
    assert whole.returncode == own.returncode == 0
    assert f"  {command} " in whole.stdout
    assert f"Usage: kview {command}" in own.stdout


@pytest.mark.parametrize("arguments", ["schema", "--help"])
def test_an_output_that_nobody_reads_is_not_an_error(arguments: str) -> None:
    done = in_shell(f'{{ "$@" {arguments}; echo $? >&2; }} | true')
    assert done.stderr == "0\n"


def test_with_a_closed_standard_error_nothing_is_said_elsewhere() -> None:
    done = in_shell('"$@" replay nothing 2>&-')
    assert (done.returncode, done.stdout) == (2, "")


def test_with_a_closed_standard_output_sockets_do_not_take_its_place() -> None:
    done = in_shell('"$@" --simulate --once --brokers 1 --topic a:1:1 --no-traffic >&-')
    assert (done.returncode, done.stderr) == (0, "")


def test_characters_that_the_terminal_cannot_show_are_replaced() -> None:
    done = run_kview("--help", environment={"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0 and "[COMMAND ?]" in done.stdout
