"""How the overview divides the screen among its panels, as a pure function of the screen's size.

A larger screen shows more rows, not larger panels.
"""

from msgspec import Struct

from kview.tui.rows.tiles import MARGIN, arranged, boxed

MIN_WIDTH = 60
MIN_HEIGHT = 15
"""Below this size the panels that matter do not fit, and kview says so in one line."""

SIDE_BY_SIDE_WIDTH = 112
"""From this width on, panels are placed side by side."""

SUMMARY_HEIGHT = 22
"""From this height on, groups and events have at least one line each."""

CONTROLLERS_HEIGHT = 45
"""From this height on, the controllers have a row each even if nothing is wrong with them."""

ONE_CONTROLLER_HEIGHT = 28
"""Below this height only one controller in trouble has a row, because the brokers come first."""

FRAMED_HEIGHT = 30
"""From this height of the terminal on, panels have frames, below it a line with their title."""

STRIPS_HEIGHT = 28
"""From this height on, topics have strips."""

LISTED_ROWS = 8
"""The list of partitions has this many lines before topics have strips."""

MOST_STRIPS = 3
"""The most lines for the signs of all brokers, above the worst of them as rows."""

LEAST_ROWS = 3
"""The head and two rows, which the table of brokers keeps below the signs of all brokers."""

MOST_SHORT = 7
"""The most lines for brokers on a screen of 19 lines, which a higher one must not give less."""

CAPTIONED_HEIGHT = 15
"""From this height on, the brokers have as many lines as that above a caption: captions of different height
come and go, and the brokers must not jump each time."""

LEAST_THROUGHPUT, MOST_THROUGHPUT = 4, 9
"""The lines of the plot below the racks, with its axis."""

LEAST_LAG = 5
"""The fewest lines of the plot of a group's lag, with its axis."""

LEAST_LISTED = 5
"""The list of partitions has at least this many lines, or else the throughput is next to the brokers."""

CHROME = 4
"""The number of lines for the head, the status line and the key line."""


class Overview(Struct, frozen=True):
    """The heights of the panels in lines and their widths in cells, both with their edges, 0 if a panel is
    not shown.

    With `side_by_side`, groups are to the right of partitions, and throughput is below the brokers, or, if it
    has no height of its own, to the right of them. Groups that get one line are only counted there.
    """

    side_by_side: bool
    brokers: int
    partitions: int
    groups: int
    """Those of the list of groups and those of `lag`."""
    events: int
    throughput_width: int
    groups_width: int
    topics: int = 0
    """Of the lines for partitions, those for the strips of topics."""
    strips: int = 0
    """Of the lines for brokers, those that the signs of all brokers may take, because not every broker has a
    row."""
    controllers: bool = False
    """Whether the controllers have tiles or rows of their own."""
    throughput: int = 0
    lag: int = 0
    """Of the lines for groups, those for the lag of the selected one."""
    boxes: bool = False
    """Whether the racks have frames, instead of one around all brokers."""


class Contents(Struct, frozen=True):
    """How much the overview has to show."""

    racks: tuple[tuple[str, int], ...]
    """Their names, and how many brokers each has."""
    groups: int
    topics: int = 0
    controllers: int = 0
    """The number of nodes that are controllers only."""
    quorum_troubled: bool = False
    """Whether anything is wrong with them."""
    is_sorted: bool = False
    """Whether the brokers are rows, in an order that the user chose."""


def _strips(topics: int, room: int) -> int:
    """Return the number of lines for the strips of topics: one alone would only count them, and one more is
    better than counting the last two."""
    return topics if topics <= room + 1 and room else room if room > 1 else 0


def edge_lines(framed: bool) -> int:
    """Return how many lines the edges of a panel take."""
    return 2 if framed else 1


def edge_cells(framed: bool) -> int:
    """Return how many cells of a line the edges of a panel take."""
    return 2 if framed else 0


def listed(room: int, wanted: int, least_below: int, framed: bool, least: int = 0) -> int:
    """Return the lines of a list and its edges above a panel that has the rest, 0 if the list takes all.

    The list gets as many lines as it wants. If it may have fewer, down to `least`, the panel and its edges
    come first.
    """
    edges = edge_lines(framed)
    most = room - least_below - 2 * edges
    return min(wanted, most) + edges if most >= (least or wanted) else 0


def overview(
    width: int, height: int, contents: Contents, framed: bool = False, captioned: bool = False
) -> Overview:
    """Divide `height` lines among the panels. The head, brokers and partitions are always shown.

    `captioned` says whether a caption stands below.
    """
    edges = edge_lines(framed)
    controllers = contents.controllers
    side_by_side = width >= SIDE_BY_SIDE_WIDTH
    events = 0 if height < SUMMARY_HEIGHT else min(10, max(1, (height - 28) // 3)) + edges
    most = max(4, height // 3 + 1) if height < 20 else max(MOST_SHORT, height // 3)
    if captioned and height >= CAPTIONED_HEIGHT:
        most = max(MOST_SHORT, most)
    most -= 1  # the edge
    number = sum(brokers for _, brokers in contents.racks)
    if side_by_side and framed:
        most_boxed = max(MOST_SHORT, height // 4)
        placed = boxed(contents.racks, controllers, width, most_boxed)
        if placed is not None:
            rows = min(number + controllers + 1, most_boxed) + edges
            brokers_height = rows if contents.is_sorted else placed.height
            shared = _above_throughput(width, height, contents, brokers_height, events)
            if shared.partitions >= edges + LEAST_LISTED:
                return shared
    throughput_width = min(72, width * 36 // 100) if side_by_side else 0
    cells = width - throughput_width - edge_cells(framed) - MARGIN
    least = 6 if side_by_side else 1
    placed = None if contents.is_sorted else arranged(contents.racks, controllers, cells, most)
    if placed is not None:
        with_controllers, strips = controllers > 0, 0
        brokers_height = max(placed.height, least)
    else:
        with_controllers = contents.quorum_troubled or (
            height >= CONTROLLERS_HEIGHT and 0 < controllers < most - max(number, 6)
        )
        listed = controllers if height >= ONE_CONTROLLER_HEIGHT else min(1, controllers)
        rows = number + (listed if with_controllers else 0)
        brokers_height = min(max(rows + 1, least), most)
        strips = min(MOST_STRIPS, brokers_height - LEAST_ROWS) if rows + 1 > brokers_height else 0
    brokers_height += edges
    left = height - CHROME - events - brokers_height
    groups_height = 0
    if side_by_side:
        groups_height = left
    elif height >= 32 and contents.groups:
        groups_height = min(contents.groups + 1 + edges, left // 3)
        left -= groups_height
    elif height >= SUMMARY_HEIGHT:
        groups_height = 1
        left -= groups_height
    return Overview(
        side_by_side=side_by_side,
        brokers=brokers_height,
        partitions=left,
        topics=_strips(contents.topics, (left - edges - LISTED_ROWS) // 3) if height >= STRIPS_HEIGHT else 0,
        groups=groups_height,
        events=events,
        throughput_width=throughput_width,
        groups_width=_groups_width(width) if side_by_side else 0,
        strips=max(0, strips),
        controllers=with_controllers,
    )


def _above_throughput(
    width: int, height: int, contents: Contents, brokers_height: int, events: int
) -> Overview:
    """Divide a screen with the brokers above the throughput, both in the whole width."""
    throughput = min(MOST_THROUGHPUT, max(LEAST_THROUGHPUT, height // 8)) + edge_lines(True)
    left = height - CHROME - events - brokers_height - throughput
    return Overview(
        side_by_side=True,
        brokers=brokers_height,
        partitions=left,
        topics=_strips(contents.topics, (left - edge_lines(True) - LISTED_ROWS) // 3),
        groups=left,
        lag=_lag(left, contents.groups),
        events=events,
        throughput_width=width,
        groups_width=_groups_width(width),
        controllers=contents.controllers > 0,
        throughput=throughput,
        boxes=not contents.is_sorted,
    )


def _lag(lines: int, groups: int) -> int:
    """Return the lines for a group's lag below the list of groups: what the list does not need."""
    if not groups:
        return 0
    left = lines - groups - 1 - edge_lines(True)
    return left if left >= LEAST_LAG + edge_lines(True) else 0


def _groups_width(width: int) -> int:
    return width * 45 // 100 if width < 150 else width * 48 // 100
