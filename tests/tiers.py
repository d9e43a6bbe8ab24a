"""Two tiers of tests: what is marked `slow` runs with CI=true only, and a run says what it left out.

A pytest plugin. A test may be slow if what it guards is guarded by a quick one, too. The slow ones come last,
and none starts later than LAST_START into a run under CI: on a machine that gives us a third of its time, the
run still ends, and says what it did not try.
"""

import os
import time

import pytest
from xdist.workermanage import WorkerController

LEFT_OUT = "slow_tests_left_out"
"""The key under which a worker of xdist tells the controller its count."""

LAST_START = 45 * 60.0
"""Seconds of a run after which no slow test starts."""

TOO_LATE = "not tried: the run had lasted {minutes:.0f} minutes, and slow tests start in the first {most:.0f}"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and report in the process that has the terminal."""
    config.addinivalue_line(
        "markers",
        "slow: takes long, and a quick test guards the most of it; left out without CI=true (or `-m slow`,"
        " or a test named by its `::` id)",
    )
    config.pluginmanager.register(LeftOut(config), "left-out")


class LeftOut:
    """Leaves the slow tests out, and counts them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = time.monotonic()
        self.count = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect what is slow, or put it last if this run is to have it."""
        items.sort(key=is_slow)
        if wants_slow(self._config):
            return
        slow = [item for item in items if is_slow(item)]
        if slow:
            self._config.hook.pytest_deselected(items=slow)
            del items[-len(slow) :]
            self.count = len(slow)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start no slow test late, unless it was asked for by its name or mark."""
        lasted = time.monotonic() - self._began
        if lasted > LAST_START and is_slow(item) and not asks_for_slow(self._config):
            pytest.skip(TOO_LATE.format(minutes=lasted / 60, most=LAST_START / 60))

    def pytest_sessionfinish(self) -> None:
        """A worker tells the controller: every worker collects all tests."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[LEFT_OUT] = self.count

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        """The controller hears of it."""
        self.count = max(self.count, getattr(node, "workeroutput", {}).get(LEFT_OUT, 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what did not run, and how it does."""
        if self.count:
            terminalreporter.write_line(
                f"{self.count} slow tests were left out: CI=true pytest runs them, too"
            )


def is_slow(item: pytest.Item) -> bool:
    """Whether the test has the mark."""
    return item.get_closest_marker("slow") is not None


def wants_slow(config: pytest.Config) -> bool:
    """Whether the run is to have slow tests."""
    return os.environ.get("CI") == "true" or asks_for_slow(config)


def asks_for_slow(config: pytest.Config) -> bool:
    """Whether the command names the mark, or single tests."""
    return any("::" in argument for argument in config.args) or "slow" in config.option.markexpr
