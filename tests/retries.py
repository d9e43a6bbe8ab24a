"""Trying a test again: only one that watches real processes by the clock, with its reason, and few in a run.

A pytest plugin. `@pytest.mark.retried(reason="…")` gives a test TRIES_AGAIN more tries. The run fails if more
than MOST_TRIED_AGAIN tests needed one: then it is the code or the tests, not the machine.
"""

from collections.abc import Generator

import pytest

Made = None | pytest.Item | pytest.Collector | list[pytest.Item | pytest.Collector]

WATCHES_PROCESSES = frozenset({"cli", "e2e", "observe", "pipeline", "real_kafka", "run", "serve"})
"""The folders of tests/ whose tests may be tried again; all others calculate or draw."""

TRIES_AGAIN = 2

MOST_TRIED_AGAIN = 3


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and count in the process that reports: under xdist that is the controller."""
    config.addinivalue_line(
        "markers",
        f"retried(reason): up to {TRIES_AGAIN} more tries, because a limit on the clock is what the test is"
        " about and a machine that stalls breaks it",
    )
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TriedAgain(), "tried-again")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, Made, Made]:
    """Give every marked test its tries. Raises CollectError for a mark where none may be."""
    made = yield
    for item in made if isinstance(made, list) else [made]:
        if not isinstance(item, pytest.Item):
            continue
        if refused := refusal(item):
            raise pytest.Collector.CollectError(f"{item.nodeid}: {refused}")
        if item.get_closest_marker("retried") is not None:
            item.add_marker(pytest.mark.flaky(reruns=TRIES_AGAIN))
    return made


def refusal(item: pytest.Item) -> str:
    """Why the test's marks may not be; empty if they may, or if it has none."""
    mark = item.get_closest_marker("retried")
    if item.get_closest_marker("flaky") is not None:
        return "use the mark retried(reason), not flaky"
    if mark is None:
        return ""
    reason = mark.kwargs.get("reason")
    if mark.args or not isinstance(reason, str) or not reason.strip():
        return 'retried needs its reason: retried(reason="…")'
    folders = item.nodeid.split("::")[0].split("/")[:-1]
    if len(folders) < 2 or folders[1] not in WATCHES_PROCESSES:
        return "a test that watches no real process is never tried again"
    return ""


class TriedAgain:
    """Counts the tests that were tried again, and fails the run if they are too many."""

    def __init__(self) -> None:
        self.tests: set[str] = set()

    @property
    def too_many(self) -> bool:
        """Whether the run must fail."""
        return len(self.tests) > MOST_TRIED_AGAIN

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a try that was not the last."""
        if getattr(report, "outcome", "") == "rerun":
            self.tests.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that would have passed."""
        if self.too_many and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why the run has failed."""
        if self.too_many:
            terminalreporter.write_line(
                f"FAILED: {len(self.tests)} tests were tried again, and at most {MOST_TRIED_AGAIN} may be",
                red=True,
            )
