"""Where the drawing of a partition's log shows what a demo marks. All functions are pure."""

import re
from collections.abc import Iterator, Sequence

from kview.language import glyphs
from kview.language import partition_log as log_words
from kview.tui.looks import Look, Spot
from kview.tui.rows.log_lines import MOST_GROUP_NAME
from kview.tui.text import Line, content, middle, width

GROUP, REPLICA = "group", "replica"
"""What `Look.column` is for a group's position and for a replica's line. `Look.word` is the group, or the
broker."""

_NUMBER = r" [\d,]+"
_HEADING = {
    "leader": r"leader \S+",
    "replicas": r"replicas \S+(?: \S+)*",
    "isr": r"ISR \d+ of \d+",
    "in": r"in \S+(?: \S+)? rec/s",
}
_ENDS = {"start": 0, "watermark": 1, "end": 2}
_FIGURES = re.compile(r"\S+(?:  \S+(?: \S+)*)?\s*$")
"""What stands behind a replica's bar: where its log ends, and how far that is behind."""


def log_spot(lines: Sequence[Line], look: Look) -> Spot | None:
    """Return the cells of the drawing that a mark is about, None if they are not shown.

    The end of a log may be drawn twice, and the lower one is the larger one.
    """
    texts = [content(spans) for spans in lines]
    for pattern in _patterns(look):
        for y in reversed(range(len(texts))):
            if match := re.search(pattern, texts[y]):
                return _replica_spot(y, texts[y]) if look.word and look.column != GROUP else _spot(y, match)
    return None


def _patterns(look: Look) -> Iterator[str]:
    """Yield what the marked text looks like, the best one first."""
    if look.column == GROUP:
        yield re.escape(middle(look.word, MOST_GROUP_NAME)) + _NUMBER
    elif look.word:
        yield rf"^ +{re.escape(look.word)} \S  "
    elif look.column == "uncommitted":
        yield f"{glyphs.UNCOMMITTED}+"
        yield from _labels(_ENDS["watermark"])
    elif look.column in _ENDS:
        yield from _labels(_ENDS[look.column])
    elif look.column in _HEADING:
        yield _HEADING[look.column]


def _labels(number: int) -> Iterator[str]:
    same = f"{log_words.ENDS[1]} = {log_words.ENDS[2]}"
    same_short = f"{log_words.ENDS_SHORT[1]} = {log_words.ENDS_SHORT[2]}"
    if number:  # Watermark and log end have one label if they are the same.
        yield from (re.escape(name) + _NUMBER for name in (same, same_short))
    yield from (rf"\b{name}{_NUMBER}" for name in (log_words.ENDS[number], log_words.ENDS_SHORT[number]))


def _spot(y: int, match: re.Match[str]) -> Spot:
    begin = width(match.string[: match.start()])
    has_room = match.string[: match.start()].endswith(" ")
    return Spot(y, begin, begin + width(match[0]), begin - 1 if has_room else 0)


def _replica_spot(y: int, text: str) -> Spot:
    match = _FIGURES.search(text)
    begin = width(text[: match.start()]) if match else 0
    return Spot(y, begin, width(text), 0)
