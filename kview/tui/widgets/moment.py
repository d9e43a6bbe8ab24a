"""The moment shown, in words for the header."""

from datetime import tzinfo

from kview.derive.view import View
from kview.language import glyphs, words
from kview.model.units import UNKNOWN

SECONDS_BELOW_MS = 600_000
"""If a recording is shorter than this, its beginning and end are shown with seconds."""


def shown_moment(view: View, replay: bool, wall_ms: int, zone: tzinfo | None, cells: int) -> str:
    """Return `❚❚ 14:02:07 · 3 m 20 s ago`, or, in a replay, `► ×4 14:02:07 of 13:30–14:31`. While another
    moment is being read, that is `reading 14:02:06 …`.

    If that does not fit into `cells`, only the first part is returned. The day is included if it differs from
    that of `wall_ms`.
    """
    moment, shown_ms = view.moment, view.snapshot.observation.ended_ms
    is_reading = moment.reading_ms != UNKNOWN
    if is_reading:
        shown_ms = moment.reading_ms
    sign = glyphs.PLAYING if moment.playing else glyphs.PAUSED
    speed = f" ×{moment.speed}" if moment.playing or moment.speed != 1 else ""
    day = words.day(shown_ms, zone)
    date = "" if day == words.day(wall_ms, zone) else f"{day} "
    clock = words.clock(shown_ms, zone, tenths=False)
    if is_reading:
        return f"reading {date}{clock} {glyphs.ELLIPSIS}"
    first = f"{sign}{speed} {date}{clock}"
    if replay:
        rest = _range(view, zone)
    else:
        rest = f" {glyphs.DOT} {words.duration(wall_ms - shown_ms, tenths=False)} ago"
    return first + rest if len(first) + len(rest) <= cells else first


def _range(view: View, zone: tzinfo | None) -> str:
    """Return when the recording begins and ends."""
    shown_ms, first_ms, last_ms = (
        view.snapshot.observation.ended_ms,
        view.moment.first_ms,
        view.moment.last_ms,
    )
    if UNKNOWN in (first_ms, last_ms):
        return ""
    days = [f"{words.day(ms, zone)} " for ms in (first_ms, last_ms)]
    if days[0] == days[1] == f"{words.day(shown_ms, zone)} ":
        days = ["", ""]
    cut = None if last_ms - first_ms < SECONDS_BELOW_MS else -len(":00")
    ends = [words.clock(ms, zone, tenths=False)[:cut] for ms in (first_ms, last_ms)]
    return f" of {days[0]}{ends[0]}–{days[1]}{ends[1]}"
