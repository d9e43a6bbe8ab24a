"""What is said about Spark wherever its figures stand: whether they cover the moment shown, and how the job
is doing."""

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
"""The window of a rate that stands for "now": long enough to be calm, short enough to show a failover."""

USUAL_DELAY_MS = 7_000
"""From a second to its roll-up on the screen at the worst, besides the interval: the seconds that are not
whole yet, and a busy job."""


def covered_until_s(view: View, options: Options) -> int | None:
    """The epoch second at which the picture's windows end; None where the roll-ups do not reach its
    moment."""
    rollups, at_ms = view.aggregates.rollups, view.snapshot.observation.ended_ms
    end_s = whole_until_s(rollups, at_ms)
    if rollups.from_ms == UNKNOWN or end_s * 1000 <= rollups.from_ms:
        return None
    return end_s if at_ms - end_s * 1000 <= USUAL_DELAY_MS + options.stale_ms else None


def basis(view: View, options: Options) -> str:
    """Where rates come from, in a few words."""
    if covered_until_s(view, options) is not None:
        return f"Spark {glyphs.DOT} {RATE_S} s windows"
    state = view.aggregates.status.state
    return {
        SparkState.STARTING: f"direct {glyphs.DOT} Spark starts",
        SparkState.FAILED: f"direct {glyphs.DOT} Spark failed",
    }.get(state, "direct")


def status(view: View, options: Options, now_ms: int, zone: tzinfo | None) -> list[Line]:
    """How the job is doing, how old its newest whole second is, and what the rates are, the most important
    first."""
    parts = [*_state(view, now_ms)]
    rollups, end_s = view.aggregates.rollups, covered_until_s(view, options)
    newest_ms = whole_until_s(rollups, view.snapshot.observation.ended_ms) * 1000
    parts.append(_dim("rates are direct" if end_s is None else f"{RATE_S} s windows"))
    if rollups.from_ms != UNKNOWN and newest_ms > rollups.from_ms:
        age = f"newest {words.duration(now_ms - newest_ms)} old"
        parts.append(_dim(age if view.moment.live else f"until {words.clock(newest_ms, zone, tenths=False)}"))
    return parts


def _dim(text: str) -> Line:
    return line(Span(text, Role.DIM))


def _state(view: View, now_ms: int) -> list[Line]:
    job = view.aggregates.status
    why = f": {message(job.error)}" if job.error is not None else ""
    match job.state:
        case SparkState.RUNNING:
            behind = [] if job.delay_ms == UNKNOWN else [line(f"{words.duration(job.delay_ms)} behind")]
            return [line(Span(f"{glyphs.OK} ", Role.GOOD), "running"), *behind]
        case SparkState.STARTING:
            since = "" if job.since_ms == UNKNOWN else f" {words.age(job.since_ms, now_ms)}"
            return [line(Span(f"{glyphs.OUT_OF_SYNC} starting", Role.WARN), since)]
        case SparkState.FAILED:
            again = [] if job.next_start_ms == UNKNOWN else [line(_next(job.next_start_ms - now_ms))]
            key = line(Span("ctrl+r", Role.KEY), " starts it")
            return [line(Span(f"{glyphs.DEAD} failed{why}", Role.WARN)), *again, key]
        case _:
            return [_dim(f"{glyphs.FOLLOWER} off: --no-spark")]


def _next(left_ms: int) -> str:
    return f"next start in {words.duration(left_ms, tenths=False)}" if left_ms >= 1000 else "next start now"
