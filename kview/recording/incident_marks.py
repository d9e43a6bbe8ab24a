"""The incidents of a recording for the time bar, as the recorder wrote them down."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc

from kview.model.incidents import PhaseKind
from kview.model.ports import TimeMark
from kview.model.units import UNKNOWN
from kview.recording.reader import Recording
from kview.recording.troubles import MAX_MARKS

COLUMNS = [
    *("id", "observed_ms", "began_ms", "ended_ms", "over", "end", "waiting", "leaderless"),
    *("elected_ms", "elected_all_ms", "moves_ms", "moves_all_ms"),
]


def incident_marks(recording: Recording, cancelled: Callable[[], bool]) -> tuple[TimeMark, ...] | None:
    """Return a mark for each incident, in the order in which they began; none of them if `cancelled`.

    Returns None if the incidents of some observation were not recorded. Raises KviewError if a segment cannot
    be read.
    """
    folded_count = 0
    for table in recording.facts("findings"):
        if cancelled():
            return ()
        folded_count += len(pc.unique(table["sequence"]))
    if folded_count < len(recording.moments()):
        return None  # An observation without any finding was not folded.
    shown_ms: dict[str, int] = {}
    last: dict[str, dict[str, Any]] = {}
    for table in recording.facts("incidents"):
        if cancelled():
            return ()
        for row in table.select(COLUMNS).to_pylist():
            shown_ms.setdefault(row["id"], row["observed_ms"])
            last[row["id"]] = row
    own = [row for row in last.values() if not (row["over"] and row["end"] == PhaseKind.JOINED)]
    own.sort(key=lambda row: int(row["began_ms"]))
    return tuple(
        TimeMark(row["began_ms"], shown_ms[row["id"]], _healing_ms(row), _ended_ms(row))
        for row in own[-MAX_MARKS:]
    )


def _ended_ms(row: Mapping[str, Any]) -> int:
    if not row["over"]:
        return UNKNOWN
    return int(row["observed_ms"] if row["ended_ms"] is None else row["ended_ms"])


def _healing_ms(row: Mapping[str, Any]) -> int:
    """Return since when every partition has been led again and its watermark moved, UNKNOWN if not yet."""
    if row["waiting"] or row["leaderless"]:
        return UNKNOWN
    repairs = [row[f"{stage}_all_ms"] for stage in ("elected", "moves") if row[f"{stage}_ms"] is not None]
    if not repairs or None in repairs:
        return UNKNOWN
    return int(row["began_ms"]) + max(map(int, repairs))
