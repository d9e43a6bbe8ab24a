"""A broker's log directories as words: what they hold, how much is free, and what is wrong with them."""

from collections.abc import Sequence

from kview.language import glyphs, kafka_errors, nouns, words
from kview.model.inspection import DirectoriesAnswer, Directory
from kview.model.units import UNKNOWN

NONE_LISTED = "the broker lists none: kview needs Describe on the cluster"
NOT_OF_NOW = "log directories and settings are read from the live cluster only"
READING = "reading …"


def held(directory: Directory) -> str:
    """Return what a directory holds: `1.1 GB in 10 replicas`."""
    text = f"{words.size(directory.size_bytes)} in {words.plural(directory.replicas, 'replica')}"
    return f"{text}, {directory.moving:,} more being moved here" if directory.moving else text


def free(directory: Directory) -> str:
    """Return how much of the volume is free: `40 GB of 100 GB free`, '' if the broker does not tell."""
    if UNKNOWN in (directory.usable_bytes, directory.total_bytes):
        return ""
    return f"{words.size(directory.usable_bytes)} of {words.size(directory.total_bytes)} free"


def full(at_ms: int, now_ms: int) -> str:
    """Return when a directory is full, if its room goes on shrinking: `full in ≈ 3 h 20 m`, '' if unknown."""
    if at_ms == UNKNOWN:
        return ""
    left_ms = at_ms - now_ms
    return f"full in ≈ {words.duration(left_ms, tenths=False)}" if left_ms >= 1_000 else "full any moment now"


def wrong(directory: Directory) -> str:
    """Return what is wrong with a directory, '' if nothing is."""
    if directory.error:
        return f"offline: {kafka_errors.name(directory.error)}"
    return "cordoned: no new replicas are placed here" if directory.cordoned else ""


def named(paths: Sequence[str]) -> str:
    """Return directories with their paths: `log directory /d1`, `log directories /d1 and /d2`."""
    shown = [glyphs.printable(path) for path in paths]
    return f"log {'directory' if len(shown) == 1 else 'directories'} {nouns.listed(shown)}"


def more(directories: int) -> str:
    """Return how many directories have no line of their own."""
    return f"+ {directories:,} more"


def title(answer: DirectoriesAnswer | None) -> str:
    """Return what stands before the directories."""
    return "log dirs" if answer is not None and len(answer.directories) > 1 else "log dir"


def not_asked(broker: int) -> str:
    """Return why a broker is not asked about its directories."""
    return f"log directories, listeners and settings: not read while broker {broker} does not answer"
