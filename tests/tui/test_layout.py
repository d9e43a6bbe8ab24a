"""The overview's layout: at every size the lines add up, and what matters is there."""

from itertools import pairwise

import pytest

from kview.tui import layout
from kview.tui.layout import Contents
from kview.tui.rows.tiles import arranged, boxed

SIX = (("R1", 3), ("R2", 3))


def racks(brokers: int, number: int = 2) -> tuple[tuple[str, int], ...]:
    """Racks with that many brokers together."""
    return tuple((f"R{rack}", len(range(rack, brokers, number))) for rack in range(min(number, brokers)))


@pytest.mark.parametrize("brokers", [1, 3, 6, 50])
def test_every_size_adds_up(brokers: int) -> None:
    for width in range(layout.MIN_WIDTH, 260, 3):
        for height in range(layout.MIN_HEIGHT, 90):
            contents = Contents(racks(brokers), groups=5, topics=9, controllers=3)
            shared = layout.overview(width, height, contents, framed=height >= layout.FRAMED_HEIGHT)
            edges = layout.edge_lines(height >= layout.FRAMED_HEIGHT)
            below = 0 if shared.side_by_side else shared.groups
            used = shared.brokers + shared.throughput + shared.partitions + below + shared.events
            assert used + layout.CHROME == height, (width, height)
            assert shared.brokers >= 2 and shared.partitions >= 4, (width, height)
            assert not shared.lag or shared.groups - shared.lag >= contents.groups + 1 + edges
            assert not shared.topics or shared.partitions - shared.topics - edges >= layout.LISTED_ROWS - 1
            if shared.side_by_side:
                assert shared.throughput or shared.throughput_width + 70 <= width + 8
                assert shared.groups_width + 60 <= width


def test_the_small_screen_has_brokers_partitions_and_a_line_each_for_groups_and_events() -> None:
    shared = layout.overview(80, 24, Contents(SIX, 4, 3, 3))
    assert shared.brokers == 7 and shared.partitions >= 9
    assert shared.events == 2 and shared.groups == 1 and not shared.side_by_side
    tiny = layout.overview(60, 15, Contents(SIX, 4, 3, 3))
    assert tiny.events == 0 and tiny.groups == 0


def test_more_room_shows_more() -> None:
    middle, large = (
        layout.overview(120, 40, Contents(SIX, 4, 3, 3), framed=True),
        layout.overview(200, 50, Contents(SIX, 4, 3, 3), framed=True),
    )
    assert middle.side_by_side and middle.events >= 1 and middle.groups > 4
    assert large.events > middle.events and large.partitions >= middle.partitions
    assert large.brokers == middle.brokers == 6 and large.throughput > middle.throughput > 4


def test_racks_have_frames_side_by_side_where_there_is_room() -> None:
    for number, deep in ((2, 5), (6, 5), (1, 5)):
        for cells in (116, 120, 200):
            placed = boxed(racks(6, number), 0, cells, 10)
            assert placed is not None and placed.is_boxed and placed.height == deep
            assert {box.y for box in placed.racks} == {0} and len(placed.racks) == number
            ends = [(box.x, box.x + box.width) for box in placed.racks]
            assert ends[0][0] == 0 and ends[-1][1] == cells
            assert all(end == begin for (_, end), (begin, _) in pairwise(ends)), "no cell between them"
            for tile in placed.tiles:
                around = [box for box in placed.racks if box.holds(tile.x, tile.y)]
                assert len(around) == 1 and around[0].y < tile.y
                assert tile.x + tile.width < around[0].x + around[0].width, "inside the frame"
                assert tile.y + tile.height < around[0].y + around[0].height
    for height in range(22, 40):
        low = layout.overview(120, height, Contents(SIX, 4, 3, 3), framed=True, captioned=True)
        assert low.partitions >= layout.LEAST_LISTED + 2, "rows of partitions, whatever the caption takes"
    crowded = boxed(racks(30, 3), 3, 120, 10)
    assert crowded is not None and crowded.kind.lines == 1 and crowded.height == 8
    assert boxed(racks(100, 10), 3, 120, 10) is None and boxed((), 3, 120, 10) is None
    sorted_rows = layout.overview(120, 40, Contents(SIX, 4, 3, 3, is_sorted=True), framed=True)
    assert not sorted_rows.boxes and sorted_rows.brokers == 12, "a head and rows"
    assert sorted_rows.throughput == layout.overview(120, 40, Contents(SIX, 4, 3, 3), framed=True).throughput
    unframed = layout.overview(120, 24, Contents(SIX, 4, 3, 3))
    assert not unframed.boxes and not unframed.throughput and unframed.throughput_width


def test_brokers_get_no_fewer_lines_on_a_higher_screen_nor_above_a_higher_caption() -> None:
    for captioned in (False, True):
        given = [
            layout.overview(80, height, Contents(SIX, 1, 3, 3), captioned=captioned).brokers
            for height in range(layout.MIN_HEIGHT, 40)
        ]
        assert given == sorted(given)
    assert {
        layout.overview(80, height, Contents(SIX, 1, 3, 3), captioned=True).brokers
        for height in range(15, 21)
    } == {7}


@pytest.mark.parametrize("quorum", [0, 3])
@pytest.mark.parametrize("number", [1, 2, 3, 5, 12, 60])
@pytest.mark.parametrize("brokers", [1, 3, 6, 9, 30, 60, 100])
def test_tiles_lie_in_their_racks_and_never_on_each_other(brokers: int, number: int, quorum: int) -> None:
    names = racks(brokers, number)
    for cells in (58, 77, 118, 198):
        for rows in range(2, 17):
            placed = arranged(names, quorum, cells, rows)
            if placed is None:
                continue
            assert len(placed.tiles) >= brokers and placed.height <= rows
            taken = [
                (x, y)
                for box in placed.tiles
                for x in range(box.x, box.x + box.width)
                for y in range(box.y, box.y + box.height)
            ]
            assert len(taken) == len(set(taken))
            assert max(x for x, _ in taken) < cells and max(y for _, y in taken) < placed.height
            begin = 0
            for rack, (_, count) in zip(placed.racks, names, strict=True):
                own = placed.tiles[begin : begin + count]
                assert all(rack.holds(tile.x, tile.y) for tile in own) and own[0].y == rack.y
                begin += count


def test_more_lines_never_make_smaller_tiles_and_what_fits_is_found() -> None:
    for cells in (58, 77, 118):
        kinds = [placed.kind for rows in range(2, 20) if (placed := arranged(SIX, 3, cells, rows))]
        assert kinds[0].lines == 1 and kinds[-1].lines == 3
        assert [kind.lines for kind in kinds] == sorted(kind.lines for kind in kinds)
    assert arranged(racks(200, 4), 0, 118, 13) is None, "a table with a strip of signs"
    assert arranged((), 0, 118, 13) is None


def test_controllers_without_room_for_a_tile_leave_room_for_their_number() -> None:
    for cells in (58, 77, 118):
        placed = arranged(SIX, 12, cells, 12)
        assert placed is not None
        of_quorum = placed.tiles[6:]
        last = of_quorum[-1]
        assert len(of_quorum) == 12 or last.x + last.width + 4 <= cells
