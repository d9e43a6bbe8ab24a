"""The table of every action and its keys. Fault keys are capital letters and need a lab.

A screen of a number key is one line in `SCREEN_ACTIONS`.
"""

from msgspec.structs import replace

from kview.derive.times import FORMS
from kview.language.filters import FORMS as FILTER_FORMS
from kview.language.inspection import RECORDS_FORMS
from kview.language.panels import DELETE_HELP
from kview.language.where import FORMS as WHERE_FORMS
from kview.model.inspection import DEFAULT_RECORDS
from kview.tui.actions import Action, Keys, Kind, Where, bindings
from kview.tui.faults import FAULT_ACTIONS

__all__ = ["ACTIONS", "APP_BINDINGS", "DEFAULT_KEYS"]


def _time(name: str, key: str, what: str, label: str, help: str, rank: int = 0) -> Action:
    return Action(name, (key,), f"time('{what}')", label, help, rank, kind=Kind.TIME)


def _paired(short: str, first: Action, second: Action) -> tuple[Action, Action]:
    """Return two actions that the key line shows as one, under a short label."""
    return replace(first, pair=second.name, short=short), second


PAUSE_ACTIONS = (
    _time("pause", "space", "pause", "pause", "freeze the view; the recording continues", 7),
    _time("pause", "space", "play", "play", "resume from the moment shown", 7),
    _time("pause", "space", "live", "live", "return to the live moment", 7),
)
"""The actions of a single key. Only one of them works at a time."""

TIME_ACTIONS = (
    *PAUSE_ACTIONS,
    *_paired(
        "step",
        _time(
            "step-back",
            "left_square_bracket",
            "back",
            "step back",
            "pause, and show the previous observation",
            19,
        ),
        _time(
            "step-forward",
            "right_square_bracket",
            "on",
            "step forward",
            "pause, and show the next observation",
        ),
    ),
    *_paired(
        "event",
        _time(
            "previous-event",
            "left_curly_bracket",
            "event_before",
            "previous event",
            "pause at the last event before the moment shown",
            20,
        ),
        _time(
            "next-event",
            "right_curly_bracket",
            "event_after",
            "next event",
            "pause at the first event after the moment shown",
        ),
    ),
    _time("go-to-time", "at", "go", "jump to time", f"show another time: {FORMS}", 21),
    *_paired(
        "speed",
        _time("slower", "less_than_sign", "slower", "slower", "play at half the speed", 22),
        _time("faster", "greater_than_sign", "faster", "faster", "play at twice the speed"),
    ),
    _time("keep", "ctrl+s", "keep", "keep", "keep this recording under a name", 23),
)
"""The actions that work only with a timeline. `kview.tui.time_keys` carries out `time`."""


def _demo(name: str, key: str, what: str, label: str, help: str, rank: int) -> Action:
    return Action(name, (key,), f"lesson('{what}')", label, help, rank)


DEMO_ACTIONS = (
    _demo("demos", "D", "list", "demos", "list the demos, and start one on a fresh cluster", 12),
    _demo("pause", "space", "next", "next step", "in a demo or the tour: the next step", 1),
    _demo("previous-step", "backspace", "before", "step before", "in a demo or the tour: the step before", 2),
    _demo("ignored-groups", "a", "auto", "by itself", "in a demo: let it run by itself, or stop that", 3),
    _demo("spark", "ctrl+r", "restart", "start again", "start the demo again on a fresh cluster", 4),
    _demo("large", "ctrl+l", "large", "large", "in a demo: large captions, for a projector", 5),
    _demo("pause", "space", "solve", "answer", "in the demo incident: say what was hit, and why", 1),
    _demo("ignored-groups", "a", "give-up", "give up", "in the demo incident: show the answer", 3),
    _demo("hint", "ctrl+t", "hint", "hint", "in the demo incident: a hint, which costs 30 s", 2),
    *(
        _demo(mode, str(number), f"answer{number}", f"answer {number}", f"choose answer {number}", 1)
        for number, mode in enumerate(("overview", "placement", "topics", "partitions"), 1)
    ),
)
"""The actions of demos, which exist only on a simulated cluster. Their keys do something else elsewhere."""


def _screen(mode: str, key: str, help: str, rank: int) -> Action:
    return Action(mode, (key,), f"go('{mode}')", mode, help, rank)


SCREEN_ACTIONS = (
    _screen("overview", "1", "what is wrong with the cluster, where, and which groups are affected", 4),
    _screen("placement", "2", "which broker holds each replica", 7),
    _screen("topics", "3", "topics with their health, traffic, size and readers", 8),
    _screen("partitions", "4", "all partitions, or only those in one kind of trouble", 8),
    _screen("groups", "5", "consumer groups with their lag, time behind and verdict", 8),
    _screen("throughput", "6", "records and bytes per second over time, calculated by Spark", 17),
    _screen("events", "7", "incidents with their stopwatch, and all events on a timeline", 17),
    _screen("lab", "8", "change the traffic, networks and settings of the simulated cluster", 17),
)
"""The screens of the number keys, as `kview.tui.navigation` names them."""


def _moving(name: str, keys: tuple[str, ...], run: str, help: str, shown: str = "") -> Action:
    return Action(name, keys, run, help, "", where=Where.TABLE, kind=Kind.MOVING, shown=shown)


TABLE_ACTIONS = (
    _moving("up", ("up", "k"), "move(-1)", "move up a row"),
    _moving("down", ("down", "j"), "move(1)", "move down a row"),
    _moving("page-up", ("pageup",), "page(-1)", "move up a page"),
    _moving("page-down", ("pagedown",), "page(1)", "move down a page"),
    _moving("half-page-up", ("ctrl+u",), "half_page(-1)", "half a page up"),
    _moving("half-page-down", ("ctrl+d",), "half_page(1)", "half a page down"),
    _moving("first-row", ("home",), "end(-1)", "first row"),
    _moving("top", ("g",), "top", "first row", "gg"),
    _moving("last-row", ("end", "G"), "end(1)", "last row"),
    Action("open", ("enter",), "open", "open", "show details of the selected row", 3, Where.TABLE),
)

LIST_ACTIONS = (
    Action("filter", ("slash",), "show('filter')", "filter", f"show only what matches: {FILTER_FORMS}", 6),
    Action("sort", ("s",), "rows('sort')", "sort", "sort the focused panel by its next column", 11),
    Action("reverse", ("r",), "rows('reverse')", "reverse", "reverse the order of the focused panel", 28),
    Action(
        "next-trouble",
        ("n",),
        "rows('trouble')",
        "next trouble",
        "select the next row that needs attention",
        10,
    ),
    Action(
        "copy",
        ("y",),
        "rows('copy')",
        "copy",
        "copy the name of the selected row to the clipboard; pressed twice, the whole row",
        32,
    ),
    Action(
        "ignored-groups",
        ("a",),
        "show('groups')",
        "ignored groups",
        "cycle: hide ignored groups / show all / hide ignored and abandoned ones",
    ),
    Action("internal", ("i",), "show('internal')", "internal", "show or hide internal topics", 30),
)

GENERAL_ACTIONS = (
    Action(
        "find",
        ("colon", "ctrl+p"),
        "find",
        "go to",
        "a screen, topic, partition, group or broker, or a command, by part of its name",
        9,
    ),
    Action(
        "what-is-wrong",
        ("exclamation_mark",),
        "wrong",
        "what is wrong",
        "every finding in full, and the stages of each incident",
        7,
    ),
    Action("fleet", ("0",), "fleet", "all clusters", "show all clusters, each in a frame", 5),
    Action("remove-broker", ("delete",), "dismiss_broker", "remove broker", DELETE_HELP),
    Action("spark", ("ctrl+r",), "spark", "start Spark", "start the Spark job, or restart it"),
    Action(
        "preferences",
        ("comma",),
        "preferences",
        "settings",
        "theme, interval, mouse and hidden groups, kept in a file",
        34,
    ),
    Action("theme", ("t",), "themes", "theme", "choose a theme; the selected one is shown at once", 31),
    Action(
        "screenshot",
        ("p",),
        "save('screenshot')",
        "screenshot",
        "save the screen as SVG and as text, in the folder for kview's files",
        33,
    ),
    Action(
        "export",
        ("ctrl+e",),
        "save('export')",
        "export",
        "save all rows of the focused table as CSV or JSON, as filtered and sorted, with unrounded values",
        34,
    ),
    Action(
        "report",
        ("ctrl+o",),
        "report",
        "report",
        "make a report of what is recorded, as text here and as a page; the same key cancels it",
        24,
    ),
    Action(
        "help", ("question_mark",), "help", "help", "explain this screen: signs, words, figures and keys", 1
    ),
    Action(
        "suspend",
        ("ctrl+z",),
        "suspend_process",
        "suspend",
        "return to the shell; the command fg brings kview back",
        kind=Kind.MOVING,
    ),
    Action("quit", ("q",), "quit", "quit", "stop kview", 2),
    Action("interrupt", ("ctrl+c",), "quit", "quit", kind=Kind.MOVING, priority=True, fixed=True),
    Action(
        "back",
        ("escape",),
        "back",
        "back",
        "stop waiting, clear the filter, leave the screen, return to live, or show all clusters",
        4,
        Where.SCREEN,
        Kind.MOVING,
    ),
    Action(
        "next-panel", ("tab",), "app.focus_next", "focus the next panel", "", 0, Where.SCREEN, Kind.MOVING
    ),
    Action(
        "previous-panel",
        ("shift+tab",),
        "app.focus_previous",
        "focus the previous panel",
        "",
        0,
        Where.SCREEN,
        Kind.MOVING,
    ),
)

LAB_ACTIONS = (
    Action(
        "more",
        ("plus", "equals_sign"),
        "adjust('more')",
        "more",
        "set the selected row higher: more records, members, replicas or bandwidth",
        1,
        Where.LAB,
        pair="less",
        short="change",
    ),
    Action("less", ("minus",), "adjust('less')", "less", "set the selected row lower", 0, Where.LAB),
    Action(
        "hold",
        ("z",),
        "adjust('pause')",
        "pause/resume",
        "pause the selected producer or group, or resume it",
        3,
        Where.LAB,
    ),
    Action(
        "kill-member",
        ("x",),
        "adjust('kill')",
        "kill member",
        "kill the youngest member of the selected group: it ends without a word",
        4,
        Where.LAB,
    ),
    Action(
        "undo-change",
        ("u",),
        "adjust('undo')",
        "undo change",
        "undo the last change made here, then the one before it",
        2,
        Where.LAB,
    ),
)
"""The actions of the lab, which are possible only in a simulated cluster."""

OWN_ACTIONS = (
    Action("tile-left", ("left",), "aside(-1)", "left tile", "", 0, Where.RACKS, Kind.MOVING),
    Action("tile-right", ("right",), "aside(1)", "right tile", "", 0, Where.RACKS, Kind.MOVING),
    Action(
        "places",
        ("b",),
        "places",
        "by place",
        "list partitions by their place in the replica lists, or draw a cell for each",
        28,
        Where.PLACEMENT,
    ),
    Action(
        "previous-topic",
        ("left",),
        "topic(-1)",
        "topic",
        "show the previous topic",
        29,
        Where.PLACEMENT,
        pair="next-topic",
        short="topic",
    ),
    Action("next-topic", ("right",), "topic(1)", "next topic", "show the next topic", 0, Where.PLACEMENT),
    Action(
        "previous-list",
        ("left",),
        "list(-1)",
        "list",
        "list the topics, the racks with their brokers, or the groups",
        29,
        Where.THROUGHPUT,
        pair="next-list",
        short="list",
    ),
    Action(
        "next-list", ("right",), "list(1)", "next list", "show the next of these lists", 0, Where.THROUGHPUT
    ),
    Action(
        "window", ("w",), "stretch", "time", "plot the last minute, 5 minutes or hour", 14, Where.THROUGHPUT
    ),
    Action(
        "window",
        ("w",),
        "stretch",
        "time",
        "plot the lag of the last minute, 10 minutes, 1 or 6 hours, or of all that is recorded",
        13,
        Where.GROUP,
    ),
    Action(
        "window",
        ("w",),
        "stretch",
        "time",
        "plot the last minute, 10 minutes, 1 or 6 hours, or all that is recorded",
        3,
        Where.OVER_TIME,
    ),
    Action(
        "previous-tab",
        ("left",),
        "tab(-1)",
        "tab",
        "show the previous tab",
        13,
        Where.TOPIC,
        pair="next-tab",
        short="tab",
    ),
    Action("next-tab", ("right",), "tab(1)", "next tab", "show the next tab", 0, Where.TOPIC),
    Action("records", ("m",), "records", "records", "the records of the selected partition", 14, Where.TOPIC),
    Action(
        "records",
        ("m",),
        "records",
        "records",
        "the record at the group's committed offset, and what follows",
        14,
        Where.GROUP,
    ),
    Action("log", ("l",), "log", "log", "the log of the selected partition", 29, Where.GROUP),
    Action(
        "settings", ("e",), "settings", "settings", "the topic's settings and their sources", 15, Where.TOPIC
    ),
    Action(
        "settings",
        ("e",),
        "settings",
        "settings",
        "the broker's settings and their sources",
        15,
        Where.BROKER,
    ),
    Action(
        "previous-choice",
        ("left",),
        "narrow(-1)",
        "narrow",
        "narrow the list to the previous state",
        11,
        Where.PARTITIONS,
        pair="next-choice",
        short="narrow",
    ),
    Action(
        "next-choice",
        ("right",),
        "narrow(1)",
        "next choice",
        "narrow the list to the next state",
        0,
        Where.PARTITIONS,
    ),
    Action(
        "zoom",
        ("z",),
        "zoom",
        "zoom",
        "draw only the end of the log, where the replicas differ",
        3,
        Where.PARTITION,
    ),
    Action("records", ("m", "l"), "records", "records", "the records of the partition", 14, Where.PARTITION),
    Action(
        "open",
        ("enter",),
        "leader",
        "leader",
        "show the broker that leads this partition",
        26,
        Where.PARTITION,
    ),
    Action(
        "previous-partition",
        ("left",),
        "next(-1)",
        "partition",
        "show the previous partition",
        13,
        Where.PARTITION,
        pair="next-partition",
        short="partition",
    ),
    Action(
        "next-partition",
        ("right",),
        "next(1)",
        "next partition",
        "show the next partition",
        0,
        Where.PARTITION,
    ),
    Action(
        "that-moment", ("v",), "go_there", "that moment", "show the cluster at that moment", 11, Where.EVENTS
    ),
    Action(
        "read-latest",
        ("l",),
        "latest",
        "latest",
        f"read the last {DEFAULT_RECORDS} records of the partition",
        3,
        Where.RECORDS,
    ),
    Action("read-from", ("f",), "read_from", "from …", f"read from {RECORDS_FORMS}", 3, Where.RECORDS),
    Action(
        "follow",
        ("w",),
        "follow",
        "follow",
        "watch the end of the topic: records of all partitions as they are written, at most 1 MiB/s; {back}"
        " ends",
        3,
        Where.RECORDS,
    ),
    Action("pause", ("space",), "hold('off')", "pause", "pause a topic that is followed", 1, Where.RECORDS),
    Action("pause", ("space",), "hold('on')", "go on", "go on at the end of the topic", 1, Where.RECORDS),
    Action(
        "read-partition",
        ("o",),
        "partition",
        "partition",
        "read another partition of the topic",
        11,
        Where.RECORDS,
    ),
    Action(
        "isolation",
        ("u",),
        "isolation",
        "isolation",
        "switch between read_committed and read_uncommitted, which also shows records of transactions that"
        " are open or were aborted",
        12,
        Where.RECORDS,
    ),
    Action(
        "filter",
        ("slash",),
        "search",
        "find",
        f"find records in all partitions of the topic: {WHERE_FORMS}",
        3,
        Where.RECORDS,
    ),
    Action(
        "export",
        ("ctrl+e",),
        "export",
        "export",
        "save the records that were found as JSON lines, a document each as `kview records` prints it",
        0,
        Where.RECORDS,
    ),
    Action("form", ("x",), "form", "text/JSON/hex", "show records as text, JSON or hex", 11, Where.RECORDS),
    Action("form", ("x",), "form", "text/JSON/hex", "show it as text, JSON or hex", 11, Where.DETAIL),
    Action("read-settings", ("l",), "read", "read again", "read the settings again", 12, Where.SETTINGS),
    Action("read-quotas", ("l",), "read", "read again", "read the quotas again", 12, Where.QUOTAS),
    Action("read-producers", ("l",), "read", "read again", "read them again", 12, Where.PRODUCERS),
    Action(
        "find-setting",
        ("f",),
        "find",
        "find",
        "show only settings that contain what you type",
        11,
        Where.SETTINGS,
    ),
    *LAB_ACTIONS,
)
"""The actions that one screen, or one panel, alone has."""

ACTIONS: tuple[Action, ...] = (
    *FAULT_ACTIONS,
    *DEMO_ACTIONS,
    *SCREEN_ACTIONS,
    *TIME_ACTIONS,
    *LIST_ACTIONS,
    *GENERAL_ACTIONS,
    *TABLE_ACTIONS,
    *OWN_ACTIONS,
)
"""Every action. The key line shows them in this order, and those of the lowest rank if not all fit."""

DEFAULT_KEYS = Keys(ACTIONS)

APP_BINDINGS = bindings(ACTIONS, Where.APP)

REPLAY_HELP = {
    "time('pause')": "freeze the view",
    "back": "clear the filter, then leave the screen",
}
"""What a key does in a replay, by its action, where that is not what it does on a live cluster."""
