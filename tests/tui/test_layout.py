"""The overview's layout: at every size the lines add up, and what matters is there."""

import pytest

from kview.tui import layout
from kview.tui.layout import Contents


@pytest.mark.parametrize("brokers", [1, 3, 6, 50])
def test_every_size_adds_up(brokers: int) -> None:
    for width in range(layout.MIN_WIDTH, 260, 3):
        for height in range(layout.MIN_HEIGHT, 90):
            shared = layout.overview(width, height, Contents(brokers, groups=5))
            below = 0 if shared.side_by_side else shared.groups
            used = shared.headline + shared.rules + shared.brokers + shared.partitions + below + shared.events
            assert used + layout.CHROME == height, (width, height)
            assert shared.headline >= 1 and shared.brokers >= 2 and shared.partitions >= 4, (width, height)
            if shared.side_by_side:
                assert shared.throughput_width + 70 <= width + 5 and shared.groups_width + 60 <= width


def test_the_small_screen_has_brokers_partitions_and_a_line_each_for_groups_and_events() -> None:
    shared = layout.overview(80, 24, Contents(6, 4))
    assert shared.brokers == 7 and shared.partitions >= 8
    assert shared.events == 1 and shared.groups == 1 and not shared.side_by_side
    tiny = layout.overview(60, 15, Contents(6, 4))
    assert tiny.events == 0 and tiny.groups == 0


def test_more_room_shows_more() -> None:
    middle, large = layout.overview(120, 40, Contents(6, 4)), layout.overview(200, 50, Contents(6, 4))
    assert middle.side_by_side and middle.events >= 1 and middle.groups > 4
    assert large.events > middle.events and large.partitions >= middle.partitions
    assert large.brokers == middle.brokers == 7


def test_brokers_get_no_fewer_lines_on_a_higher_screen_nor_above_a_higher_caption() -> None:
    for captioned in (False, True):
        given = [
            layout.overview(80, height, Contents(6, 1), captioned=captioned).brokers
            for height in range(layout.MIN_HEIGHT, 40)
        ]
        assert given == sorted(given)
    assert {
        layout.overview(80, height, Contents(6, 1), captioned=True).brokers for height in range(15, 21)
    } == {7}
