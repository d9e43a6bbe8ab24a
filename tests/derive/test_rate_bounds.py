"""Sums of rates that leave out a partition whose rate is not known are lower bounds, and marked."""

from kview.derive.view import View
from kview.plain.blocks import block
from kview.tui.screens.group import group_lines
from kview.tui.text import content
from tests.worlds import default_world
from tests.worlds.small import watch


def seen(silent: bool) -> View:
    """The default world after half a minute, without readings of what broker 4 leads if it is silent."""
    world = default_world()
    return watch(world, 36, lambda second: world.crash(4) if silent and second == 30 else None)[-1]


def test_a_sum_without_a_partition_says_that_it_is_a_lower_bound() -> None:
    whole, view = seen(silent=False), seen(silent=True)
    for each in (whole.topics.in_is_bound, whole.brokers.in_is_bound, whole.groups.write_is_bound):
        assert not each.any(), "everything is known"
    topics = view.topics.topic.tolist()
    invoice = topics.index("invoice")
    assert view.topics.in_is_bound[invoice] and view.topics.in_rate[invoice] < whole.topics.in_rate[invoice]
    assert not view.brokers.in_is_bound.any(), "of a broker, all partitions are known or none"
    billing = view.snapshot.groups.group.tolist().index("billing")
    assert view.groups.write_is_bound[billing]
    written = round(float(view.groups.write_rate[billing]))
    said = "".join(content(line) for line in group_lines(view, "billing", 200))
    assert f"producers write ≥{written:,}/s" in said
    assert f"≥{written:,}" in block(view, "x")
