"""The keys, and what help says about them. Fault keys are capital letters and need a lab."""

from dataclasses import dataclass

from textual.binding import Binding

from kview.derive.times import FORMS
from kview.language.faults import does
from kview.language.panels import DELETE_HELP
from kview.model.faults import FaultKind

SLOW_BY_MS = 200
"""How much `W` slows a broker down: enough for followers to fall behind, but not enough to look dead."""


SPARK_KEY = "^r"
"""The name of the key that starts Spark, as shown on the screen."""


@dataclass(frozen=True, slots=True)
class FaultKey:
    """A fault's key.

    `aims` is what has to be selected: `broker` for a broker, `rack` for a broker whose rack is hit, '' for
    nothing. `fault` prefers a selected broker that has a fault. `undo` says how to end the fault, and is ''
    for a key that ends faults.
    """

    key: str
    kind: FaultKind
    label: str
    aims: str
    undo: str
    slow_ms: int = 0

    @property
    def help(self) -> str:
        """What the key does and how to undo it, for help."""
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
        FaultKey("B", FaultKind.START, "restore", "fault", ""),
        FaultKey("X", FaultKind.LOSE_RACK, "lose rack", "rack", "U, or B for one broker"),
        FaultKey("C", FaultKind.CRASH_CONTROLLER, "crash controller", "", _BACK),
        FaultKey("U", FaultKind.UNDO, "undo faults", "", ""),
    )
}

FAULT_BINDINGS = [
    Binding(fault.key, f"fault('{fault.key}')", fault.label, tooltip=fault.help)
    for fault in FAULT_KEYS.values()
]

SPACE_BINDINGS = [
    Binding("space", "time('pause')", "pause", tooltip="freeze the view; the recording continues"),
    Binding("space", "time('play')", "play", tooltip="resume from the moment shown"),
    Binding("space", "time('live')", "live", tooltip="return to the live moment"),
]
"""The bindings of a single key. Only one of these bindings is in force at a time."""

TIME_BINDINGS = [
    *SPACE_BINDINGS,
    Binding(
        "left_square_bracket",
        "time('back')",
        "step back",
        key_display="[",
        tooltip="pause, and show the previous observation",
    ),
    Binding(
        "right_square_bracket",
        "time('on')",
        "step forward",
        key_display="]",
        tooltip="pause, and show the next observation",
    ),
    Binding(
        "left_curly_bracket",
        "time('event_before')",
        "previous event",
        key_display="{",
        tooltip="pause at the last event before the moment shown",
    ),
    Binding(
        "right_curly_bracket",
        "time('event_after')",
        "next event",
        key_display="}",
        tooltip="pause at the first event after the moment shown",
    ),
    Binding("g", "time('go')", "jump to time", tooltip=f"show another time: {FORMS}"),
    Binding("less_than_sign", "time('slower')", "slower", key_display="<", tooltip="play at half the speed"),
    Binding(
        "greater_than_sign",
        "time('faster')",
        "faster",
        key_display=">",
        tooltip="play at twice the speed",
    ),
    Binding("k", "time('keep')", "keep", tooltip="keep this recording under a name"),
]
"""The bindings that work only with a timeline. `kview.tui.time_keys` carries out `time`."""

APP_BINDINGS = [
    *FAULT_BINDINGS,
    Binding(
        "1",
        "go('overview')",
        "overview",
        tooltip="what is wrong with the cluster, where, and which groups are affected",
    ),
    Binding(
        "2",
        "go('placement')",
        "placement",
        tooltip="which broker holds each replica",
    ),
    Binding("5", "go('groups')", "groups", tooltip="consumer groups with their lag, time behind and verdict"),
    Binding(
        "6",
        "go('throughput')",
        "throughput",
        tooltip="records and bytes per second over time, calculated by Spark",
    ),
    *TIME_BINDINGS,
    Binding(
        "slash",
        "show('filter')",
        "filter",
        key_display="/",
        tooltip="show only topics and groups whose names contain what you type",
    ),
    Binding("delete", "dismiss_broker", "remove broker", key_display="Del", tooltip=DELETE_HELP),
    Binding("s", "show('sort')", "sort", tooltip="change the order of the focused panel"),
    Binding(
        "a",
        "show('groups')",
        "ignored groups",
        tooltip="cycle: hide ignored groups / show all / hide ignored and abandoned ones",
    ),
    Binding("i", "show('internal')", "internal", tooltip="show or hide internal topics"),
    Binding(
        "ctrl+r",
        "spark",
        "start Spark",
        key_display=SPARK_KEY,
        tooltip="start the Spark job, or restart it",
    ),
    Binding("t", "next_theme", "theme", tooltip="switch to the next theme"),
    Binding("question_mark", "help", "help", key_display="?", tooltip="show the keys of this screen"),
    Binding(
        "ctrl+p",
        "commands",
        "commands",
        key_display="^p",
        tooltip="find every command by name; themes can be previewed",
    ),
    Binding(
        "ctrl+z",
        "suspend_process",
        "suspend",
        show=False,
        key_display="^z",
        tooltip="return to the shell; the command fg brings kview back",
    ),
    Binding("q", "quit", "quit", tooltip="stop kview"),
    Binding("ctrl+c", "quit", "quit", show=False, key_display="^c", priority=True),
]

REPLAY_HELP = {
    "time('pause')": "freeze the view",
    "back": "clear the filter, then leave the screen",
}
"""What a key does in a replay, by its action, where that is not what it does on a live cluster."""

KEY_LINE_ORDER = (
    "question_mark",
    "q",
    "K",
    "B",
    "l",
    "f",
    "x",
    "p",
    "u",
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
    "m",
    "e",
)
"""The keys of the bottom line. If the line is too short for all of them, it shows the first of these."""

_TIME_FIRST = (
    "question_mark",
    "q",
    "space",
    "left_square_bracket",
    "left_curly_bracket",
    "g",
    "less_than_sign",
)

KEY_LINE_ORDER_NOT_LIVE = (*_TIME_FIRST, *(k for k in KEY_LINE_ORDER if k not in (*_TIME_FIRST, *FAULT_KEYS)))
"""The same keys while the moment shown is not live, when faults do not work."""

KEY_LINE_NAMES = {
    "left_square_bracket": ("[ ]", "step"),
    "left_curly_bracket": ("{ }", "event"),
    "less_than_sign": ("< >", "speed"),
    "B": ("B", "restore"),
    "X": ("X", "lose rack"),
    "C": ("C", "kill controller"),
    "U": ("U", "undo"),
}
"""Keys that the bottom line shows together with their opposite, or with a shorter name."""
