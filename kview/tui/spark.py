"""What is said about Spark wherever its figures stand: whether they cover the moment shown, and how the job
is doing."""

from datetime import tzinfo

from kview.derive import words
from kview.derive.view import View
from kview.derive.windows import WINDOWS_S, whole_until_s
from kview.model.aggregates import SparkState
from kview.model.units import UNKNOWN
from kview.tui import glyphs
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


def status(view: View, options: Options, now_ms: int, zone: tzinfo | None) -> Line:
    """How the job is doing, how old its newest whole second is, and what the rates are."""
    made = _state(view, now_ms)
    end_s = covered_until_s(view, options)
    if end_s is None:
        return (*made, Span(f" {glyphs.DOT} rates are direct", Role.DIM))
    parts = [f"{RATE_S} s windows"]
    if view.moment.live:
        parts.append(f"newest second {words.duration(now_ms - end_s * 1000)} old")
    else:
        parts.append(f"until {words.clock(end_s * 1000, zone, tenths=False)}")
    return (*made, *(Span(f" {glyphs.DOT} {part}", Role.DIM) for part in parts))


def _state(view: View, now_ms: int) -> Line:
    job = view.aggregates.status
    why = f": {job.why}" if job.why else ""
    match job.state:
        case SparkState.RUNNING:
            behind = "" if job.delay_ms == UNKNOWN else f" {glyphs.DOT} {words.duration(job.delay_ms)} behind"
            return line(Span(f"{glyphs.OK} ", Role.GOOD), Span("running"), Span(behind))
        case SparkState.STARTING:
            since = "" if job.since_ms == UNKNOWN else f" {words.age(job.since_ms, now_ms)}"
            return line(Span(f"{glyphs.OUT_OF_SYNC} ", Role.WARN), Span(f"starting{since}"))
        case SparkState.FAILED:
            again = "" if job.next_start_ms == UNKNOWN else "next start " + _in(job.next_start_ms - now_ms)
            again = f" {glyphs.DOT} {again or 'not started again by itself'} {glyphs.DOT} ctrl+r starts it"
            return line(Span(f"{glyphs.DEAD} failed{why}", Role.WARN), Span(again))
        case _:
            return line(Span(f"{glyphs.FOLLOWER} off{why}", Role.DIM))


def _in(left_ms: int) -> str:
    return f"in {words.duration(left_ms, tenths=False)}" if left_ms >= 1000 else "now"
