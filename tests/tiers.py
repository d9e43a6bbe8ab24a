"""Two tiers of tests: what is marked `slow` runs with CI=true only, and a run says what it left out.

A pytest plugin. A test may be slow if what it guards is guarded by a quick one, too.
"""

import os

import pytest
from xdist.workermanage import WorkerController

LEFT_OUT = "slow_tests_left_out"
"""The key under which a worker of xdist tells the controller its count."""


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
        self.count = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect what is slow, unless this run is to have it."""
        if wants_slow(self._config):
            return
        slow = [item for item in items if item.get_closest_marker("slow") is not None]
        if slow:
            self._config.hook.pytest_deselected(items=slow)
            items[:] = [item for item in items if item not in slow]
            self.count = len(slow)

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


def wants_slow(config: pytest.Config) -> bool:
    """Whether the run is to have slow tests: under CI, or if it asks for the mark or for single tests."""
    named = any("::" in argument for argument in config.args)
    return os.environ.get("CI") == "true" or named or "slow" in config.option.markexpr
