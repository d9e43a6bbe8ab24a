"""Where to look: what is marked on the screen, by name."""

from dataclasses import dataclass
from difflib import get_close_matches

from kview.school.figures import SUBJECTS, NotAFigure, parse, parse_subject

PANELS = (
    "header", "headline", "brokers", "placement", "topics", "partitions", "groups", "members", "events",
    "incident", "log", "replicas",
)  # fmt: skip
"""The panels that can be marked. `log` is a partition's log with the groups' offsets on it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A panel, or a row (`subject` and `of`), or the cell of a row that shows the figure `name`."""

    panel: str = ""
    subject: str = ""
    of: tuple[str, ...] = ()
    name: str = ""
    at: int = -1
    """The broker whose figure it is, as in `end@2`; −1 if the figure is not one of a broker."""


def mark(text: str) -> Mark:
    """Return what a text names: `panel groups`, `broker 4`, `partition invoice-3 isr`. Raises NotAFigure."""
    words = text.split()
    if words[:1] == ["panel"]:
        if len(words) != 2 or words[1] not in PANELS:
            near = get_close_matches(" ".join(words[1:]), PANELS, 1)
            hint = f"did you mean {near[0]}?" if near else f"available panels: {', '.join(PANELS)}"
            raise NotAFigure(f"there is no panel named {' '.join(words[1:])!r}", hint)
        return Mark(panel=words[1])
    subject, of, rest = parse_subject(words)
    if not rest and SUBJECTS[subject].names:
        return Mark(subject=subject, of=of)
    figure, more = parse(words)
    if more:
        raise NotAFigure(f"unexpected {' '.join(more)!r} after the figure", "remove it")
    return Mark(subject=figure.subject, of=figure.of, name=figure.name, at=figure.at)
