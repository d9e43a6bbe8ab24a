"""What is said about a broker: what it is doing, and its fencing."""

from typing import NamedTuple

from kview.derive.view import BrokerFigures
from kview.language import directories, glyphs, words
from kview.model.snapshot import Brokers
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN

SOON_MS = 24 * 3_600_000
"""The list of brokers only says when a log directory is full if that is sooner than this."""

CANNOT_BE_FENCED = "no controller can fence it"


class BrokerWords(NamedTuple):
    """What a broker is doing, as a sign and words: `✕`, `silent` and `4 s`.

    `fine` says whether it is up and answers as usual. `lasts` is `lasts_ms` in words, for how long that has
    been so. Both are only given for some states.
    """

    sign: str
    name: str
    fine: bool = False
    lasts: str = ""
    lasts_ms: int = UNKNOWN
    is_bound: bool = False
    """Whether `lasts_ms` is a lower bound."""

    @property
    def text(self) -> str:
        """All words: `silent 4 s`."""
        return f"{self.name} {self.lasts}".rstrip()


def state(table: Brokers, figures: BrokerFigures, row: int, now_ms: int) -> BrokerWords:
    """Return what the broker in that row is doing, with ages as of `now_ms`, epoch ms.

    Every list of brokers says this, so that no two of them differ.
    """
    kind = BrokerState(table.state[row])
    if kind is BrokerState.UP:
        if figures.slow_since_ms[row] != UNKNOWN:
            return BrokerWords(glyphs.UP, "slow")
        if figures.late[row]:
            answered_ms = int(table.answered_ms[row])
            return BrokerWords(
                glyphs.UP,
                "no reply",
                lasts=words.age(answered_ms, now_ms),
                lasts_ms=_length(answered_ms, now_ms),
            )
        if figures.cut_off_since_ms[row] != UNKNOWN:
            alone_ms = int(figures.cut_off_since_ms[row])
            lasts = words.age(alone_ms, now_ms)
            return BrokerWords(glyphs.UP, "cut off", lasts=lasts, lasts_ms=_length(alone_ms, now_ms))
        if figures.failed_dirs[row]:
            return BrokerWords(glyphs.DEAD, "dir failed")
        return BrokerWords(glyphs.OK, kind.value, fine=True)
    since_ms, is_bound = int(table.since_ms[row]), bool(figures.since_is_bound[row])
    if figures.unreached[row]:
        sign = words.UNSEEN
    elif kind is BrokerState.STARTING or (kind is BrokerState.FENCED and table.answers[row]):
        sign = glyphs.OUT_OF_SYNC
    else:
        sign = glyphs.DEAD
    lasts = words.state_age(since_ms, now_ms, is_bound)
    return BrokerWords(sign, kind.value, lasts=lasts, lasts_ms=_length(since_ms, now_ms), is_bound=is_bound)


def _length(since_ms: int, now_ms: int) -> int:
    return since_ms if since_ms == UNKNOWN else now_ms - since_ms


def log_dirs(figures: BrokerFigures, row: int, now_ms: int) -> str:
    """Return how many log directories of the broker in that row have failed, and when the next one is full
    if that is soon; '' if there is nothing to say."""
    notes = []
    if figures.failed_dirs[row]:
        all_ = words.plural(int(figures.dirs[row]), "log dir")
        notes.append(f"{figures.failed_dirs[row]:,} of {all_} offline")
    full_ms = int(figures.full_ms[row])
    if full_ms != UNKNOWN and full_ms - now_ms < SOON_MS:
        notes.append(f"log dir {directories.full(full_ms, now_ms)}")
    return f" {glyphs.DOT} ".join(notes)


def fencing(figures: BrokerFigures, row: int, now_ms: int) -> str:
    """Return when the broker in that row will be fenced, or why not; '' if there is nothing to say."""
    if figures.cannot_be_fenced[row]:
        return CANNOT_BE_FENCED
    return words.fencing(int(figures.fencing_due_ms[row]), now_ms)
