"""The keys, and what help says about them. Faults are capital letters and need a lab."""

from dataclasses import dataclass

from textual.binding import Binding

from kview.derive.times import FORMS
from kview.language.faults import does
from kview.language.panels import DELETE_HELP
from kview.model.faults import FaultKind

SLOW_BY_MS = 200
"""How much `W` slows a broker down: enough to see followers fall behind, not enough to look dead."""


@dataclass(frozen=True, slots=True)
class FaultKey:
    """A fault's key: `aims` is what it needs selected (`broker`, `rack` of a broker, or nothing), `undo` how
    to end it ('' for what ends faults itself)."""

    key: str
    kind: FaultKind
    label: str
    aims: str
    undo: str
    slow_ms: int = 0

    @property
    def help(self) -> str:
        """What it does and how to undo it, for help."""
        undo = f". Undo: {self.undo}" if self.undo else ""
        return f"{does(self.kind, self.slow_ms)}{undo}"


_BACK = "B"

FAULT_KEYS: dict[str, FaultKey] = {
    fault.key: fault
    for fault in (
        FaultKey("K", FaultKind.CRASH, "crash", "broker", _BACK),
        FaultKey("S", FaultKind.STOP, "stop", "broker", _BACK),
        FaultKey("H", FaultKind.HANG, "hang", "broker", _BACK),
        FaultKey("W", FaultKind.SLOW, "slow", "broker", _BACK, SLOW_BY_MS),
        FaultKey("B", FaultKind.START, "back", "broker", ""),
        FaultKey("X", FaultKind.LOSE_RACK, "rack", "rack", "U, or B on one broker"),
        FaultKey("C", FaultKind.CRASH_CONTROLLER, "controller", "", "U"),
        FaultKey("U", FaultKind.UNDO, "undo", "", ""),
    )
}

FAULT_BINDINGS = [
    Binding(fault.key, f"fault('{fault.key}')", fault.label, tooltip=fault.help)
    for fault in FAULT_KEYS.values()
]

SPACE_BINDINGS = [
    Binding("space", "time('pause')", "pause", tooltip="hold the picture; recording goes on"),
    Binding("space", "time('play')", "play", tooltip="go on from the moment shown"),
    Binding("space", "time('live')", "live", tooltip="return to the live moment"),
]
"""One key, of which one binding at a time is in force."""

TIME_BINDINGS = [
    *SPACE_BINDINGS,
    Binding(
        "left_square_bracket",
        "time('back')",
        "step back",
        key_display="[",
        tooltip="pause, and show the observation before",
    ),
    Binding(
        "right_square_bracket",
        "time('on')",
        "step on",
        key_display="]",
        tooltip="pause, and show the observation after",
    ),
    Binding(
        "left_curly_bracket",
        "time('event_before')",
        "previous event",
        key_display="{",
        tooltip="pause where something happened before the moment shown",
    ),
    Binding(
        "right_curly_bracket",
        "time('event_after')",
        "next event",
        key_display="}",
        tooltip="pause where something happens next",
    ),
    Binding("g", "time('go')", "go to time", tooltip=f"show another moment: {FORMS}"),
    Binding("less_than_sign", "time('slower')", "slower", key_display="<", tooltip="play at half the speed"),
    Binding(
        "greater_than_sign",
        "time('faster')",
        "faster",
        key_display=">",
        tooltip="play at twice the speed",
    ),
    Binding("k", "time('keep')", "keep", tooltip="keep what was recorded, under a name of yours"),
]
"""Only with a timeline. `time` is `kview.tui.time_keys`."""

APP_BINDINGS = [
    *FAULT_BINDINGS,
    Binding(
        "1", "go('overview')", "overview", tooltip="which cluster, is anything wrong, where, and who suffers"
    ),
    Binding(
        "2",
        "go('placement')",
        "placement",
        tooltip="the teaching table, live: brokers by places in the replica lists",
    ),
    Binding("5", "go('groups')", "groups", tooltip="consumer groups: lag, time behind, verdicts"),
    Binding(
        "6", "go('throughput')", "throughput", tooltip="records and bytes per second by Spark's roll-ups"
    ),
    *TIME_BINDINGS,
    Binding(
        "slash",
        "filter",
        "filter",
        key_display="/",
        tooltip="only topics and groups whose name holds what you type",
    ),
    Binding("delete", "dismiss_broker", "drop broker", key_display="Del", tooltip=DELETE_HELP),
    Binding("s", "sort", "sort", tooltip="the next order of the panel that has the keys"),
    Binding("i", "internal", "internal", tooltip="show or hide internal topics"),
    Binding(
        "ctrl+r",
        "spark",
        "start Spark",
        tooltip="start the background job, or end it and start it anew",
    ),
    Binding("t", "next_theme", "theme", tooltip="the next theme"),
    Binding("question_mark", "help", "help", key_display="?", tooltip="this list"),
    Binding(
        "ctrl+p",
        "commands",
        "commands",
        key_display="^p",
        tooltip="every command by name; themes with a preview",
    ),
    Binding("q", "quit", "quit", tooltip="end kview"),
    Binding("ctrl+c", "quit", "quit", show=False, priority=True),
]

KEY_LINE_ORDER = (
    "question_mark",
    "q",
    "K",
    "B",
    "space",
    "1",
    "2",
    "5",
    "escape",
    "slash",
    "H",
    "S",
    "W",
    "w",
    "U",
    "X",
    "6",
    "C",
    "left_square_bracket",
    "left_curly_bracket",
    "g",
    "less_than_sign",
    "k",
    "ctrl+p",
    "enter",
    "s",
    "r",
    "left",
    "i",
    "t",
)
"""The keys of the bottom line; where it is too short for all, it keeps the first of these."""

_TIME_FIRST = (
    "question_mark",
    "q",
    "space",
    "left_square_bracket",
    "left_curly_bracket",
    "g",
    "less_than_sign",
)

KEY_LINE_ORDER_HELD = (*_TIME_FIRST, *(k for k in KEY_LINE_ORDER if k not in (*_TIME_FIRST, *FAULT_KEYS)))
"""The same while another moment than the live one is shown: faults are not for the past."""

KEY_LINE_PAIRS = {
    "left_square_bracket": ("[ ]", "step"),
    "left_curly_bracket": ("{ }", "event"),
    "less_than_sign": ("< >", "speed"),
}
"""Keys that the bottom line names together with their opposite."""
