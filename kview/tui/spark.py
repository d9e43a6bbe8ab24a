"""What the screen says about Spark: whether its figures cover the moment shown, and how the job is doing."""

from datetime import tzinfo

from kview.derive.view import View
from kview.derive.windows import WINDOWS_S, whole_until_s
from kview.language import glyphs, words
from kview.language.errors import message
from kview.model.aggregates import SparkState
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.text import Line, Role, Span, line

RATE_S = WINDOWS_S[0]
"""The window of a rate that is shown as current: long enough to be steady, short enough to show a
failover."""

DIRECT = "direct rates"
"""The name of rates that are calculated from the difference between two observations."""

USUAL_DELAY_MS = 12_000
"""The longest usual time from the end of a second to its roll-up on the screen, in addition to the interval.
Some seconds are still incomplete, the job may be busy, and it rests for seconds while nobody looks."""


def covered_until_s(view: View, options: Options) -> int | None:
    """Return the epoch second at which the view's windows end.

    None if the roll-ups do not reach the view's moment.
    """
    rollups, at_ms = view.aggregates.rollups, view.snapshot.observation.ended_ms
    end_s = whole_until_s(rollups, at_ms)
    if rollups.from_ms == UNKNOWN or end_s * 1000 <= rollups.from_ms:
        return None
    return end_s if at_ms - end_s * 1000 <= USUAL_DELAY_MS + options.stale_ms else None


def basis(view: View, options: Options) -> str:
    """Return where the rates come from, in a few words, because the panel's head has little room."""
    return DIRECT if covered_until_s(view, options) is None else f"Spark {glyphs.DOT} {RATE_S} s"


def status(view: View, options: Options, now_ms: int, zone: tzinfo | None) -> list[Line]:
    """Return how the job is doing, what the rates are, and how far its newest complete second is behind.

    The most important line comes first.
    """
    state, *rest = _state(view, options, now_ms)
    rollups, end_s = view.aggregates.rollups, covered_until_s(view, options)
    newest_ms = whole_until_s(rollups, view.snapshot.observation.ended_ms) * 1000
    parts = [state, _dim(DIRECT if end_s is None else f"{RATE_S} s windows"), *rest]
    if rollups.from_ms != UNKNOWN and newest_ms > rollups.from_ms:
        behind = f"figures {words.duration(now_ms - newest_ms)} old"
        until = f"figures up to {words.clock(newest_ms, zone, tenths=False)}"
        parts.append(_dim(behind if view.moment.live else until))
    return parts


def _dim(text: str) -> Line:
    return line(Span(text, Role.DIM))


def _state(view: View, options: Options, now_ms: int) -> list[Line]:
    job = view.aggregates.status
    why = f": {message(job.error)}" if job.error is not None else ""
    match job.state:
        case SparkState.RUNNING:
            return [line(Span(f"{glyphs.OK} ", Role.GOOD), "running")]
        case SparkState.STARTING:
            since = "" if job.since_ms == UNKNOWN else f" {words.age(job.since_ms, now_ms)}"
            return [line(Span(f"{glyphs.OUT_OF_SYNC} starting", Role.WARN), since)]
        case SparkState.FAILED:
            again = [] if job.next_start_ms == UNKNOWN else [line(_next(job.next_start_ms - now_ms))]
            key = line(Span(options.keys.name("spark"), Role.KEY), " restarts it now")
            return [line(Span(f"{glyphs.DEAD} failed{why}", Role.WARN)), *again, key]
        case _:
            return [_dim(f"{glyphs.FOLLOWER} off: --no-spark")]


def _next(left_ms: int) -> str:
    return f"retrying in {words.duration(left_ms, tenths=False)}" if left_ms >= 1000 else "retrying now"
