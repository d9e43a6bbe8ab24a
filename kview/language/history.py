"""What the lists of events about one partition or one broker say."""

from kview.language import glyphs, words
from kview.model.events import Event, EventKind, Severity
from kview.model.history import Led

TITLE_OF_PARTITION = "HISTORY of leader and ISR, newest first"
NOTHING_OF_PARTITION = "no leader or ISR change in the last ten minutes, or since kview started watching"
TITLE_OF_BROKER = "EVENTS that name this broker, newest first"
NOTHING_OF_BROKER = "none in the last ten minutes, or since kview started"


def unnamed(number: int) -> str:
    """Return how many events may concern the partition without naming it, '' if there are none."""
    if not number:
        return ""
    return f"{words.plural(number, 'event')} naming only some partitions may concern this one"


SAME_MS = 1_500
"""An event and a change in the recording that are closer than this are the same."""

_LED = frozenset(
    {
        EventKind.LEADER_MOVED,
        EventKind.LEADER_RETURNED,
        EventKind.LEADER_LOST,
        EventKind.ISR_SHRANK,
        EventKind.ISR_GREW,
    }
)


def is_told(event: Event, led: tuple[Led, ...]) -> bool:
    """Return whether changes of leader or ISR say what an event says, for one partition and more exactly."""
    return event.kind in _LED and any(abs(state.at_ms - event.at_ms) <= SAME_MS for state in led)


def change(now: Led, before: Led | None) -> str:
    """Return how leader, epoch and ISR changed, or what they were when the recording began."""
    if before is None:
        isr = " ".join(map(str, now.isr)) or "empty"
        facts = (_leader(now), f"epoch {now.epoch}", f"ISR {isr}")
        return f"earliest in the recording: {f' {glyphs.DOT} '.join(facts)}"
    parts = []
    if now.leader != before.leader:
        parts.append(f"leader {_id(before)} {glyphs.ARROW} {_id(now)}")
    if now.epoch != before.epoch:
        parts.append(f"epoch {before.epoch} {glyphs.ARROW} {now.epoch}")
    if set(now.isr) != set(before.isr):
        isrs = (" ".join(map(str, state.isr)) or "empty" for state in (before, now))
        parts.append(f"ISR {f' {glyphs.ARROW} '.join(isrs)}")
    return f" {glyphs.DOT} ".join(parts)


def severity(now: Led, before: Led | None) -> Severity:
    """Return how urgent a change is."""
    if before is None:
        return Severity.CALM
    if now.leader < 0:
        return Severity.RISK
    if set(before.isr) - set(now.isr):
        return Severity.WARN
    return Severity.GOOD if set(now.isr) - set(before.isr) or before.leader < 0 else Severity.CALM


def _leader(led: Led) -> str:
    return "no leader" if led.leader < 0 else f"leader {led.leader}"


def _id(led: Led) -> str:
    return "none" if led.leader < 0 else str(led.leader)
