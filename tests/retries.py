"""Trying a test again: only one that watches real processes by the clock, and few in a run.

A pytest plugin. The tests of a folder in BY_THE_CLOCK have TRIES_AGAIN more tries; no other test has. The run
fails if more than MOST_TRIED_AGAIN tests needed one: then it is the code or the tests, not the machine. Only
where other virtual machines took MUCH_TAKEN of the processors or more is it the machine.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

Made = None | pytest.Item | pytest.Collector | list[pytest.Item | pytest.Collector]

BY_THE_CLOCK = {
    "cli": "a command has some seconds to start, to do its work and to end",
    "differential": "a broker that starts for longer than its session lasts does not do what was recorded",
    "e2e": "an end within a second and silence within 4 s are what some of its tests are about",
    "observe": "an observation waits a quarter of a second for answers, and less at short intervals",
    "pipeline": "a Spark session that starts may take what its tests allow for a batch",
    "real_kafka": "Kafka's sessions of two seconds go on while the machine stalls",
    "run": "an end within a second is what some of its tests are about",
    "secured": "a handshake under TLS or SASL has its deadline",
    "serve": "a consumer's session of six seconds and a broker's of two go on while the machine stalls",
    "truth": "what happened and what was shown are compared by the clock",
}
"""The folders of tests/ whose tests watch processes, or sockets, and may be tried again, and why."""

TRIES_AGAIN = 2

SECONDS_BEFORE = 5
"""A stall is often over by then."""

MOST_TRIED_AGAIN = 20
"""Two in a hundred of those tests."""

STAT = Path("/proc/stat")

MUCH_TAKEN = 0.15
"""This share of a run's processor time was given to other virtual machines: with it, clocks prove nothing."""


def pytest_configure(config: pytest.Config) -> None:
    """Count in the process that reports: under xdist that is the controller."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TriedAgain(), "tried-again")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, Made, Made]:
    """Give the tests of those folders their tries. Raises CollectError for a test that gives itself some."""
    made = yield
    for item in made if isinstance(made, list) else [made]:
        if not isinstance(item, pytest.Item):
            continue
        if item.get_closest_marker("flaky") is not None:
            raise pytest.Collector.CollectError(f"{item.nodeid}: its folder gives tries, not the mark flaky")
        if folder(item) in BY_THE_CLOCK:
            item.add_marker(pytest.mark.flaky(reruns=TRIES_AGAIN, reruns_delay=SECONDS_BEFORE))
    return made


def folder(item: pytest.Item) -> str:
    """The folder of tests/ that has the test; empty if none has."""
    parts = item.nodeid.split("::")[0].split("/")
    return parts[1] if len(parts) > 2 else ""


def processor_times() -> tuple[int, int]:
    """What Linux has counted since it started, in ticks: taken for other virtual machines, and all of it."""
    if not STAT.exists():
        return 0, 0
    user_to_steal = STAT.read_text().split("\n", 1)[0].split()[1:9]
    return int(user_to_steal[-1]), sum(map(int, user_to_steal))


def share_taken(since: tuple[int, int]) -> float:
    """The share of the processors' time that went to other virtual machines since those `processor_times`."""
    taken, total = processor_times()
    return (taken - since[0]) / max(1, total - since[1])


class TriedAgain:
    """Counts the tests that were tried again, and fails the run if they are too many."""

    def __init__(self) -> None:
        self.tests: set[str] = set()
        self._began = processor_times()

    @property
    def many(self) -> bool:
        """Whether that is more than a machine of our own explains."""
        return len(self.tests) > MOST_TRIED_AGAIN

    @property
    def too_many(self) -> bool:
        """Whether the run must fail."""
        return self.many and share_taken(self._began) < MUCH_TAKEN

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
        elif self.many:
            terminalreporter.write_line(
                f"{len(self.tests)} tests were tried again, while other virtual machines took"
                f" {share_taken(self._began):.0%} of the processors' time"
            )
