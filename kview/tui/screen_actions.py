"""The actions that one screen, or one panel, alone has: a part of the table in `kview.tui.keys`."""

from kview.language.inspection import RECORDS_FORMS
from kview.model.inspection import DEFAULT_RECORDS
from kview.tui.actions import Action, Where

OWN_ACTIONS = (
    Action(
        "racks",
        ("b",),
        "racks",
        "by rack",
        "order the brokers round-robin over the racks, or group them by rack",
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
        "narrow the list: previous choice",
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
        "narrow the list: next choice",
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
    Action("records", ("m",), "records", "records", "the records of the partition", 14, Where.PARTITION),
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
    Action("form", ("x",), "form", "text/JSON/hex", "show records as text, JSON or hex", 11, Where.RECORDS),
    Action("form", ("x",), "form", "text/JSON/hex", "show it as text, JSON or hex", 11, Where.DETAIL),
    Action("read-settings", ("l",), "read", "read again", "read the settings again", 12, Where.SETTINGS),
    Action(
        "find-setting", ("f",), "find", "find", "show only settings that contain a text", 11, Where.SETTINGS
    ),
)
"""The actions that one screen, or one panel, alone has."""
