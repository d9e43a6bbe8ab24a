"""Two tiers of tests: what is marked `slow` runs with CI=true only, and a run says that it left tests out.

A pytest plugin. A test may be slow if a quick one guards most of what it guards. So may most of a test's
parameters: `@pytest.mark.quick(2)` keeps its first two.
"""

import os
from collections import Counter

import pytest

LEFT_OUT = "tests marked slow were left out: CI=true pytest runs them, too"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks."""
    config.addinivalue_line("markers", "quick(count): with further parameters the test is slow")
    config.addinivalue_line(
        "markers",
        "slow: takes long, and a quick test guards most of it; left out without CI=true (or `-m slow`,"
        " or a test named by its `::` id)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is slow, unless this run is to have it."""
    if wants_slow(config):
        return
    before: Counter[str] = Counter()
    quick: list[pytest.Item] = []
    slow: list[pytest.Item] = []
    for item in items:
        function = item.nodeid.split("[")[0]
        (slow if is_slow(item, before[function]) else quick).append(item)
        before[function] += 1
    config.hook.pytest_deselected(items=slow)
    items[:] = quick


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how they run."""
    if not wants_slow(config):
        terminalreporter.write_line(LEFT_OUT)


def is_slow(item: pytest.Item, before: int) -> bool:
    """Whether the test is marked as slow, or is not among the quick ones of its function, of which as many as
    `before` have been collected."""
    quick = item.get_closest_marker("quick")
    return item.get_closest_marker("slow") is not None or (quick is not None and before >= quick.args[0])


def wants_slow(config: pytest.Config) -> bool:
    """Whether the environment, the command's mark or a test's name asks for slow tests."""
    named = any("::" in argument for argument in config.args)
    return named or os.environ.get("CI") == "true" or "slow" in config.option.markexpr
