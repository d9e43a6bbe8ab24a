"""What a run cost: printed after a run of several folders, so that every change sees what it added.

A pytest plugin. Each test has its processor time (its own, and that of children that ended while it ran) as a
property, `processor_s`, which `--junitxml` writes, too.
"""

import resource
import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass

import pytest

SLOWEST = 10
"""How many tests are named."""

PROPERTY = "processor_s"

BEGAN = pytest.StashKey[float]()
"""The processor time when a test began."""


def processor_s() -> float:
    """Processor time of this process and of its children that have ended, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass
class Cost:
    """Tests and the seconds that they took."""

    tests: int = 0
    wall_s: float = 0.0
    processor_s: float = 0.0


def pytest_configure(config: pytest.Config) -> None:
    """Add up in the process that has the terminal."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Costs(), "costs")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let the test's last report, the one of its teardown, carry what it cost."""
    item.stash[BEGAN] = processor_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Measure when its teardown is over."""
    report = yield
    if report.when == "teardown":
        report.user_properties.append((PROPERTY, round(processor_s() - item.stash[BEGAN], 3)))
    return report


class Costs:
    """Adds up what tests cost, by folder."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._tests: defaultdict[str, Cost] = defaultdict(Cost)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test."""
        cost = self._tests[report.nodeid]
        cost.wall_s += report.duration
        cost.processor_s += sum(
            float(str(value)) for name, value in report.user_properties if name == PROPERTY
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the run, its folders and its slowest tests, unless one folder was all there was."""
        folders: defaultdict[str, Cost] = defaultdict(Cost)
        for test, cost in self._tests.items():
            folder = folders["/".join(test.split("::")[0].split("/")[:2])]
            folder.tests += 1
            folder.wall_s += cost.wall_s
            folder.processor_s += cost.processor_s
        if len(folders) < 2:
            return
        say = terminalreporter.write_line
        terminalreporter.section("what it cost", "-")
        say(f"{'wall s':>8} {'processor s':>12} {'tests':>6}")
        wall_s = time.monotonic() - self._began_s
        say(f"{wall_s:8.0f} {processor_s():12.0f} {len(self._tests):6}  all of it, its start included")
        for name, cost in sorted(folders.items(), key=lambda pair: -pair[1].wall_s):
            say(f"{cost.wall_s:8.0f} {cost.processor_s:12.0f} {cost.tests:6}  {name}")
        slowest = sorted(self._tests.items(), key=lambda pair: -pair[1].wall_s)[:SLOWEST]
        for name, cost in slowest:
            say(f"{cost.wall_s:8.1f} {cost.processor_s:12.1f} {'':6}  {name}")
