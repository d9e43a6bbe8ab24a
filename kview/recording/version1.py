"""Reads recordings of schema version 1 as if they had the current version.

Version 1 stored the reason for a failure as text, for brokers, groups, partitions, and the failed parts of an
observation. The known texts become kinds of failures and Kafka's error numbers here. Version 1 also stored
the quorum's high watermark, which nothing used.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from kview.language import kafka_errors
from kview.model.failures import Cause, FailureKind, refused
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN_ID
from kview.recording import version2
from kview.recording.columns import Array
from kview.recording.moments import Column, Kind, Layout, kind_of
from kview.recording.schema import STREAMED, stream_of

VERSION = 1

NAMES_1 = (*(name for name in version2.NAMES_2 if not name.endswith(".error_code")), "partitions.error")
"""The column names of version 1, in any order."""

_FAILURE = pa.struct(
    [("part", pa.string()), ("broker", pa.int32()), ("why", pa.string()), ("shown_since_ms", pa.int64())]
)
OBSERVATIONS_1 = pa.schema(
    [
        ("sequence", pa.int64()),
        ("observed_sequence", pa.int64()),
        ("began_ms", pa.int64()),
        ("ended_ms", pa.int64()),
        ("cluster_id", pa.string()),
        ("controller_id", pa.int32()),
        ("controller_epoch", pa.int32()),
        ("quorum_high_watermark", pa.int64()),
        ("quorum_received_ms", pa.int64()),
        ("asked", pa.list_(pa.string())),
        ("requests", pa.int64()),
        ("bytes_sent", pa.int64()),
        ("bytes_received", pa.int64()),
        ("failures", pa.list_(_FAILURE)),
        ("capabilities", pa.list_(pa.string())),
    ]
)
PARTS_1: Mapping[str, pa.Schema] = {**STREAMED, "observations": OBSERVATIONS_1}
"""The parts of a segment in version 1."""
STREAM_1 = stream_of(PARTS_1)

_SILENT_TEXTS = ("accepts connections, no answer for 1.5 s", "accepts connections, no answer for 10 s")
_KINDS: Mapping[str, FailureKind] = {
    "": FailureKind.NONE,
    **dict.fromkeys(("not connected", "Node not connected", "closed"), FailureKind.NOT_CONNECTED),
    "too many names are being looked up": FailureKind.NOT_CONNECTED,
    "connection refused": FailureKind.REFUSED,
    **dict.fromkeys(
        (
            "KafkaTimeoutError: not connected", "KafkaTimeoutError: Connection timed out",
            "110 ETIMEDOUT", "113 EHOSTUNREACH", "101 ENETUNREACH",
        ),
        FailureKind.UNREACHABLE,
    ),
    **dict.fromkeys(_SILENT_TEXTS, FailureKind.SILENT),
    **dict.fromkeys(
        (
            "RequestTimedOutError: no answer for 1.5 s", "RequestTimedOutError: no answer for 10 s",
            "KafkaTimeoutError: Timeout during ApiVersions check",
        ),
        FailureKind.SILENT,
    ),
    **dict.fromkeys(
        (
            "closes connections without an answer", "connection closed", "socket disconnected",
            "[Errno 104] Connection reset by peer", "[Errno 32] Broken pipe",
        ),
        FailureKind.CLOSED,
    ),
    "answers in HTTP": FailureKind.HTTP,
    "answers in TLS": FailureKind.TLS,
    "does not speak Kafka's protocol": FailureKind.NOT_KAFKA,
    "the broker does not know this request": FailureKind.UNSUPPORTED,
    "no answer for 3 s": FailureKind.OVERDUE,
    "the answer names no partition": FailureKind.INCOMPLETE,
}  # fmt: skip
"""The texts of version 1, except for names of Kafka's errors and texts about a coordinator."""

_HEARD = "; only kview cannot reach it: the quorum sees it fetching"
"""A suffix of a broker's text. It is ignored, because kview now derives this fact."""
_COORDINATOR, _DOES_NOT_ANSWER = "coordinator ", " does not answer: "
_LEFT = "it has left the cluster"

_RENAMED: Mapping[str, int] = {
    "UNKNOWN": -1,
    "NOT_LEADER_FOR_PARTITION": 6,
    "MESSAGE_SIZE_TOO_LARGE": 10,
    "INVALID_TOPIC": 17,
    "INVALID_REPLICATION_ASSIGNMENT": 39,
}
"""Error names that version 1 spelt differently from Kafka."""
_NUMBERS: Mapping[str, int] = {
    **{name: number for number, name in kafka_errors.NAMES.items()},
    **_RENAMED,
}


@cache  # a recording has few different texts
def cause(text: str) -> Cause:
    """Return the cause that a text of version 1 stands for, or OTHER if the text is unknown."""
    text = text.removesuffix(_HEARD)
    if text in _KINDS:
        return Cause(_KINDS[text])
    if text in _NUMBERS:
        return refused(_NUMBERS[text])
    if text.startswith(_COORDINATOR) and _DOES_NOT_ANSWER in text:
        left = text.endswith(_DOES_NOT_ANSWER + _LEFT)
        return Cause(FailureKind.COORDINATOR_GONE if left else FailureKind.COORDINATOR_SILENT)
    return Cause(FailureKind.OTHER)


def _kinds(texts: Array) -> Array:
    out = np.empty(len(texts), object)
    out[:] = [cause(text).kind.value for text in texts]
    return out


def _codes(texts: Array) -> Array:
    codes = [cause(text).code for text in texts]
    return np.array([0 if code == UNKNOWN_ID else code for code in codes], np.int32)


@dataclass(frozen=True, slots=True)
class _Changed:
    """A column of version 1 with a function applied to its values."""

    column: Column
    change: Callable[[Array], Array]

    @property
    def moments(self) -> Longs:
        return self.column.moments

    def layer(self, number: int) -> Array:
        return self.change(self.column.layer(number))


def _kind(name: str) -> Kind:
    return Kind(np.object_, "") if name == "partitions.error" else kind_of(name)


def _upgraded(columns: dict[str, Column]) -> dict[str, Column]:
    out = dict(columns)
    partitions = out.pop("partitions.error")
    out["partitions.error_code"] = _Changed(partitions, _codes)
    for table in ("brokers", "groups"):
        out[f"{table}.error"] = _Changed(columns[f"{table}.error"], _kinds)
    out["groups.error_code"] = _Changed(columns["groups.error"], _codes)
    return version2.upgraded(out)


def layout(names: tuple[str, ...]) -> Layout:
    """Return how the columns of a version-1 recording become those of the current version.

    `names` are the column names in its manifest.
    """
    return Layout(names, _kind, _upgraded)


def rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of version 1's observations as rows of the current version."""
    for row in table.to_pylist():
        del row["quorum_high_watermark"]
        row["asked"] = [_part(name) for name in row["asked"]]
        for failure in row["failures"]:
            kind, code = cause(failure.pop("why"))
            failure |= {"part": _part(failure["part"]), "kind": kind.value, "code": code}
        yield row


def _part(name: str) -> str:
    """Return the value of a Part, which version 1 wrote with spaces."""
    return name.replace(" ", "_")
