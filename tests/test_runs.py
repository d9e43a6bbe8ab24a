"""The suite's own rules: which tests may be tried again and how often, and which are left out."""

from pathlib import Path

import pytest

from tests import retries, tiers
from tests.retries import MOST_TRIED_AGAIN, MUCH_TAKEN, processor_times, share_taken

ROOT = Path(__file__).resolve().parents[1]

FAILS_ONCE = """
import os, pytest

@pytest.mark.parametrize("number", range({count}))
def test_fails_once(number):
    seen = f"{{os.environ['SEEN']}}-{{number}}"
    if not os.path.exists(seen):
        open(seen, "w").close()
        raise AssertionError("the machine stalled")
"""

SLOW_AND_QUICK = """
import pytest

@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_long(number): ...

def test_short(): ...
"""


OTHERS_TAKE = """
import tests.retries
pytest_plugins = ["tests.retries", "tests.tiers"]
tests.retries.share_taken = lambda since: {taken}
tests.retries.SECONDS_BEFORE = 0
"""
"""A conftest with a machine of whose time others take that share."""


class Suite:
    """A project with the suite's plugins and tests of its own; with workers it runs in its own process."""

    def __init__(self, pytester: pytest.Pytester, patch: pytest.MonkeyPatch) -> None:
        self._pytester = pytester
        for name in ("share_taken", "SECONDS_BEFORE"):  # a run in this process sets them
            patch.setattr(retries, name, getattr(retries, name))
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("SEEN", str(pytester.path / "seen"))
        patch.delenv("CI", raising=False)
        patch.delenv("PYTEST_ADDOPTS", raising=False)
        for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
            patch.delenv(name, raising=False)
        self.others_take(0.0)

    def others_take(self, share: float) -> None:
        """Have other virtual machines take that share of the processors' time."""
        self._pytester.makeconftest(OTHERS_TAKE.format(taken=share))

    def write(self, room: str, tests: str) -> None:
        """Make tests/`room`/test_it.py."""
        file = self._pytester.path / "tests" / room / "test_it.py"
        file.parent.mkdir(parents=True)
        file.write_text(tests)

    def run(self, *flags: str) -> pytest.RunResult:
        """Run pytest over all that was written."""
        run = self._pytester.runpytest_inprocess if "-n0" in flags else self._pytester.runpytest_subprocess
        return run("--strict-markers", "--import-mode=importlib", *flags)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    return Suite(pytester, monkeypatch)


def test_a_few_tests_may_be_tried_again(suite: Suite) -> None:
    suite.write("serve", FAILS_ONCE.format(count=MOST_TRIED_AGAIN))
    ran = suite.run("-n0")
    assert ran.ret == pytest.ExitCode.OK
    ran.assert_outcomes(passed=MOST_TRIED_AGAIN)
    assert "were tried again" not in ran.stdout.str()


def test_what_watches_no_process_is_never_tried_again(suite: Suite) -> None:
    suite.write("observe", FAILS_ONCE.format(count=1))
    suite.write("derive", FAILS_ONCE.format(count=1).replace("-{number}", "-derive"))
    suite.run("-n0").assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_run_fails_if_too_many_were_tried_again(suite: Suite, workers: str) -> None:
    suite.write("serve", FAILS_ONCE.format(count=MOST_TRIED_AGAIN + 1))
    ran = suite.run(workers)
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.assert_outcomes(passed=MOST_TRIED_AGAIN + 1)
    ran.stdout.fnmatch_lines([f"FAILED: {MOST_TRIED_AGAIN + 1} tests were tried again*"])


def test_a_machine_that_others_use_explains_tries(suite: Suite) -> None:
    suite.others_take(MUCH_TAKEN)
    suite.write("serve", FAILS_ONCE.format(count=MOST_TRIED_AGAIN + 1))
    ran = suite.run("-n2")
    assert ran.ret == pytest.ExitCode.OK
    ran.stdout.fnmatch_lines(
        [f"{MOST_TRIED_AGAIN + 1} tests were tried again, while other virtual machines took 15% of the *"]
    )


def test_the_share_that_others_took_is_read_from_the_system() -> None:
    taken, total = processor_times()
    assert 0 <= taken < total
    assert share_taken((taken - 25, total - 100)) == pytest.approx(0.25, abs=0.2)


@pytest.mark.parametrize("room", ["derive", "observe"])
def test_a_test_that_gives_itself_tries_ends_the_run(suite: Suite, room: str) -> None:
    suite.write(room, "import pytest\n@pytest.mark.flaky(reruns=2)\ndef test_it(): ...\n")
    ran = suite.run("-n1")
    assert ran.ret != pytest.ExitCode.OK and "passed" not in ran.parseoutcomes()
    ran.stdout.fnmatch_lines([f"tests/{room}/test_it.py::test_it: its folder gives tries*"])


def test_another_mark_does_not_bring_slow_tests_back(suite: Suite) -> None:
    suite.write("serve", SLOW_AND_QUICK)
    ran = suite.run("-n0", "-m", "not skipif")
    assert ran.parseoutcomes()["passed"] == 1


def test_slow_tests_are_left_out_and_the_summary_says_so(suite: Suite) -> None:
    suite.write("serve", SLOW_AND_QUICK)
    ran = suite.run("-n2")
    assert ran.parseoutcomes()["passed"] == 1
    ran.stdout.fnmatch_lines(["2 slow tests were left out: CI=true pytest runs them, too"])


@pytest.mark.parametrize(
    ("flags", "ci", "passed"),
    [((), "true", 3), (("tests/serve/test_it.py::test_long",), "", 2)],
    ids=["CI", "by name"],
)
def test_slow_tests_run_if_asked_for(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], ci: str, passed: int
) -> None:
    monkeypatch.setenv("CI", ci)
    suite.write("serve", SLOW_AND_QUICK)
    ran = suite.run("-n0", *flags)
    assert ran.parseoutcomes()["passed"] == passed
    assert "left out" not in ran.stdout.str()


def test_slow_tests_come_last_and_none_starts_late(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    suite.write("serve", SLOW_AND_QUICK)
    ran = suite.run("-n0", "-v")
    assert [line.split("::")[1].split()[0] for line in ran.stdout.lines if "PASSED" in line] == [
        "test_short",
        "test_long[0]",
        "test_long[1]",
    ]
    monkeypatch.setattr(tiers, "LAST_START", 0.0)
    ran = suite.run("-n0", "-rs")
    ran.assert_outcomes(passed=1, skipped=2)
    ran.stdout.fnmatch_lines(["*not tried: the run had lasted 0 minutes, *"])
    ran = suite.run("-n0", "-m", "slow")
    ran.assert_outcomes(passed=2, deselected=1)
