"""The time keys: which of them work at the moment shown, and what each of them asks of the timeline."""

from datetime import datetime, time, tzinfo
from typing import TYPE_CHECKING

from kview.derive.times import FORMS, moment_of
from kview.derive.view import LIVE, View
from kview.language import glyphs, words
from kview.model.ports import Moment
from kview.model.units import UNKNOWN
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.prompt import Question

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

ASK_TIME = "time to show, such as 14:05 or -5m (from here)"
ASK_NAME = "a name for this recording"
LAST_HELP = "show the end of the recording"


class TimeKeys:
    """Carries out the actions `time('…')`, which exist only with a timeline."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._looking: tuple[StatusMessage, int] | None = None
        """What is said during a search for an event, and the moment (epoch ms) from which it goes."""
        self._going = ""
        """Which moment is to be shown, as it is said until it is."""

    @property
    def moment(self) -> Moment:
        """The moment shown."""
        return self._app.view.moment if self._app.view is not None else LIVE

    def allows(self, what: str) -> bool:
        """Return whether the action works now."""
        timeline, moment = self._app.timeline, self.moment
        if timeline is None:
            return False
        match what:
            case "pause":
                return moment.live or moment.playing
            case "play":
                return timeline.replay and not (moment.live or moment.playing)
            case "live":
                return not timeline.replay and not moment.live
            case "slower" | "faster" | "last":
                return timeline.replay
            case _:
                return True

    def do(self, what: str) -> None:
        """Carry out an action. Raises ValueError if there is no action of that name."""
        timeline = self._app.timeline
        if timeline is None:
            return
        self._app.clear_message()
        match what:
            case "pause" | "play":
                timeline.toggle()
            case "live" | "last":
                timeline.live()
            case "back":
                timeline.step(-1)
            case "on":
                timeline.step(1)
            case "event_before":
                self._look("before")
                timeline.seek_event(-1)
            case "event_after":
                self._look("after")
                timeline.seek_event(1)
            case "slower":
                timeline.faster(-1)
            case "faster":
                timeline.faster(1)
            case "go":
                self._app.ask(Question("time", ASK_TIME, "jump", self._go, self._problem))
            case "keep":
                self._app.ask(Question("name", ASK_NAME, "keep", self._keep))
            case _:
                raise ValueError(what)

    def _look(self, side: str) -> None:
        """Say that a search begins: in hours of a large cluster it takes a while."""
        if self._app.view is None:
            return
        from_ms = self._app.view.snapshot.observation.ended_ms
        clock = words.clock(from_ms, self._app.zone)
        message = StatusMessage(
            f"looking for the event {side} {clock} {glyphs.DOT} any other time key ends this"
        )
        self._looking = message, from_ms
        self._app.say(message, keep=True)

    def arrived(self, view: View) -> None:
        """Take back what is said during a search, if this view is what the search has found, and say that a
        moment is shown, once it is."""
        if self._going and view.moment.reading_ms == UNKNOWN and not view.moment.live:
            going, self._going = self._going, ""
            if self._app.status_message.text == f"going to {going}":
                self._app.say(StatusMessage(f"now showing {going}"))
        if self._looking is None:
            return
        message, from_ms = self._looking
        is_found = view.moment.reading_ms != UNKNOWN
        if is_found or view.moment.live or view.snapshot.observation.ended_ms != from_ms:
            self._looking = None
            if self._app.status_message.text == message.text:
                self._app.clear_message()

    def _problem(self, typed: str) -> str:
        """Return why the prompt stays open: what was typed is not a time that can be shown."""
        view, zone = self._app.view, self._app.zone
        if view is None:
            return ""
        first_ms, last_ms = view.moment.first_ms, view.moment.last_ms
        at_ms = asked_ms(typed, view.snapshot.observation.ended_ms, first_ms, last_ms, zone)
        if at_ms is None:
            return f"{typed!r} is not a valid time {glyphs.DOT} write {FORMS}"
        return ends_before(at_ms, last_ms, zone) if UNKNOWN != last_ms < at_ms else ""

    def _go(self, typed: str) -> None:
        """Jump to the time that was typed."""
        timeline, view = self._app.timeline, self._app.view
        if not typed or timeline is None or view is None:
            return
        moment = view.moment
        shown_ms = view.snapshot.observation.ended_ms
        at_ms = asked_ms(typed, shown_ms, moment.first_ms, moment.last_ms, self._app.zone)
        if at_ms is None:
            return
        zone = self._app.zone
        if moment.first_ms != UNKNOWN and at_ms < moment.first_ms:
            first = words.clock(moment.first_ms, zone, tenths=False)
            self._app.say(StatusMessage(f"the recording starts at {first}"))
        elif words.day(at_ms, zone) != words.day(shown_ms, zone):
            self._say_going(on_another_day(at_ms, shown_ms, zone))
        timeline.seek(at_ms)

    def show(self, at_ms: int, why: str = "") -> None:
        """Show the cluster at a moment, if the recording has it. `why` says what there is to see."""
        timeline, first_ms = self._app.timeline, self.moment.first_ms
        zone = self._app.zone
        if timeline is None:
            self._app.say(StatusMessage("there is no recording to step back in"))
        elif first_ms != UNKNOWN and at_ms < first_ms:
            first = words.clock(first_ms, zone, tenths=False)
            self._app.say(StatusMessage(f"the recording starts at {first}"))
            timeline.seek(first_ms)
        else:
            self._say_going(f"{words.clock(at_ms, zone)}{f': {why}' if why else ''}")
            timeline.seek(at_ms)

    def _say_going(self, to: str) -> None:
        self._going = to
        self._app.say(StatusMessage(f"going to {to}"))

    def _keep(self, typed: str) -> None:
        """Keep the recording under the name that was typed."""
        if typed and self._app.timeline is not None:
            self._app.timeline.keep(typed)


def on_another_day(at_ms: int, shown_ms: int, zone: tzinfo | None) -> str:
    """Return `at_ms` in words, on another day than `shown_ms` is."""
    at, shown = (datetime.fromtimestamp(ms / 1000, zone).date() for ms in (at_ms, shown_ms))
    days = (at - shown).days
    away = f"{words.plural(abs(days), 'day')} {'earlier' if days < 0 else 'later'}"
    said = {-1: "the day before", 1: "the day after"}.get(days, away)
    return f"{words.moment(at_ms, zone)}, {said}"


def ends_before(at_ms: int, last_ms: int, zone: tzinfo | None) -> str:
    """Return the sentence that a moment is after the last one that can be shown."""
    at, last = words.moment(at_ms, zone), words.moment(last_ms, zone)
    return f"{at} is after the recording, which ends at {last}"


def asked_ms(typed: str, shown_ms: int, first_ms: int, last_ms: int, zone: tzinfo | None) -> int | None:
    """Return the moment asked for while `shown_ms` is shown, epoch ms, or None if it is not a valid time.

    A time of day refers to the day shown. If that is after `last_ms`, it is the latest such time before it,
    if the recording, which begins at `first_ms`, has that time.
    """
    day = datetime.fromtimestamp(shown_ms / 1000, zone).date()
    day_ends_ms = int(datetime.combine(day, time.max, zone).timestamp() * 1000)

    def found(until_ms: int) -> int | None:
        return moment_of(typed, minus_from_ms=shown_ms, plus_from_ms=shown_ms, last_ms=until_ms, zone=zone)

    at_ms = found(day_ends_ms)
    if at_ms is None or last_ms == UNKNOWN or at_ms <= last_ms:
        return at_ms
    earlier_ms = found(last_ms)
    recorded = earlier_ms is not None and first_ms != UNKNOWN and earlier_ms >= first_ms
    return earlier_ms if recorded else at_ms
