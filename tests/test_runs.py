"""The suite's own rules: which tests may be tried again and how often, and which are left out."""

from pathlib import Path

import pytest

from tests.retries import MOST_TRIED_AGAIN

ROOT = Path(__file__).resolve().parents[1]

FAILS_ONCE = """
import os, pytest

@pytest.mark.retried(reason="a limit on the clock")
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


class Suite:
    """A project with the suite's plugins and tests of its own; with workers it runs in its own process."""

    def __init__(self, pytester: pytest.Pytester, patch: pytest.MonkeyPatch) -> None:
        self._pytester = pytester
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("SEEN", str(pytester.path / "seen"))
        patch.delenv("CI", raising=False)
        patch.delenv("PYTEST_ADDOPTS", raising=False)
        for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
            patch.delenv(name, raising=False)
        pytester.makeconftest('pytest_plugins = ["tests.retries", "tests.tiers"]')

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


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_run_fails_if_too_many_were_tried_again(suite: Suite, workers: str) -> None:
    suite.write("serve", FAILS_ONCE.format(count=MOST_TRIED_AGAIN + 1))
    ran = suite.run(workers)
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.assert_outcomes(passed=MOST_TRIED_AGAIN + 1)
    ran.stdout.fnmatch_lines([f"FAILED: {MOST_TRIED_AGAIN + 1} tests were tried again*"])


REFUSED = {
    "derive": ('retried(reason="a limit")', "watches no real process"),
    "tui": ('retried(reason="a limit")', "watches no real process"),
    "serve": ("retried", "needs its reason"),
    "run": ('retried(reason=" ")', "needs its reason"),
    "cli": ("flaky(reruns=2)", "use the mark retried"),
}
"""A mark by the room of its test, and what is said of it."""


def test_a_mark_that_may_not_be_ends_the_run(suite: Suite) -> None:
    for room, (mark, _) in REFUSED.items():
        suite.write(room, f"import pytest\n@pytest.mark.{mark}\ndef test_it(): ...\n")
    ran = suite.run("-n1")
    assert ran.ret != pytest.ExitCode.OK and "passed" not in ran.parseoutcomes()
    for room, (_, why) in REFUSED.items():
        ran.stdout.fnmatch_lines([f"tests/{room}/test_it.py::test_it: *{why}*"])


def test_another_mark_does_not_bring_slow_tests_back(suite: Suite) -> None:
    suite.write("serve", SLOW_AND_QUICK)
    ran = suite.run("-n0", "-m", "not retried")
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
