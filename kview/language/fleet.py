"""Several clusters on one screen, in words."""

from kview.language import words
from kview.language.glyphs import DOT, DOWN, UP

CONNECTING = "connecting"
NOT_REACHED = "cannot be reached"
NO_NEW_FIGURES = "no new figures"
RESTARTED = "restarted"
WELL = "well"
ALL_WELL = "ALL WELL"
NO_CLUSTER = "no cluster"


def waiting(duration: str) -> str:
    """Return that there has been no figure of a cluster yet."""
    return f"waiting {duration}"


def no_answer(duration: str) -> str:
    """Return that a cluster has not answered since kview began to observe it."""
    return f"no answer for {duration}"


def current(number: int, of: int) -> str:
    """Return how many clusters have current figures."""
    return f"{number:,} of {of:,} current "


def others(number: int) -> str:
    """Return how many more clusters are in trouble."""
    return f"{number:,} more in trouble"


def connecting_to(number: int) -> str:
    """Return that so many clusters have not answered yet."""
    return f"connecting to {words.plural(number, 'cluster')}"


def none_matches(filter: str) -> str:
    """Return why there are no rows."""
    return f"no cluster matches {filter}"


def hidden(filter: str, number: int) -> str:
    """Return how many clusters a filter hides."""
    return f"{filter} {DOT} {number:,} hidden"


def more(above: int, below: int) -> str:
    """Return how many rows are out of sight."""
    parts = [f"{UP} {above:,} above"] if above else []
    return f"   {DOT} ".join([*parts, *([f"{DOWN} +{below:,} more"] if below else [])])
