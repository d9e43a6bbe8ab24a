"""Notices: what kview reports about itself, such as a recording that stopped or a command that failed."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from kview.errors import ErrorFacts
from kview.model.events import Severity

NoticeValue: TypeAlias = str | int | float | ErrorFacts


class NoticeKind(StrEnum):
    """What happened. The text for a kind, in `kview.language.notices`, refers to the notice's values by
    name."""

    OBSERVING_FAILED = "observing failed"
    OBSERVING_AGAIN = "observing again"
    SOURCE_NOT_REACHED = "source not reached"
    SOURCE_LOST = "source lost"
    SOURCE_NOT_RESTARTED = "source not restarted"
    SOURCE_RESTARTED = "source restarted"
    RECORDING_STOPPED = "recording stopped"
    RECORDING_SLOW = "recording slow"
    RECORDING_BUSY = "recording busy"
    KEPT = "kept"
    NOT_KEPT = "not kept"
    UPLOAD_FAILED = "upload failed"
    UPLOADING_AGAIN = "uploading again"
    HOOK_FAILED = "hook failed"
    NO_SPEED = "no speed"
    NOTHING_TO_STEP_TO = "nothing to step to"
    NOT_RECORDING_YET = "not recording yet"
    NO_LATER_EVENT = "no later event"
    NO_EARLIER_EVENT = "no earlier event"
    RECORDING_ENDS = "recording ends"
    REPLAY_FAILED = "replay failed"
    BEFORE_RECORDING = "before recording"
    AFTER_RECORDING = "after recording"
    SEGMENT_DAMAGED = "segment damaged"
    SEGMENTS_MISSING = "segments missing"
    LAST_SEGMENT_MISSING = "last segment missing"
    RECORDING_INTERRUPTED = "recording interrupted"
    RECORDING_AGAIN = "recording again"
    PROPERTIES_UNUSED = "properties unused"
    PROFILE_NOT_SHOWN = "profile not shown"
    GROUPS_AWAITED = "groups awaited"
    GROUPS_LEFT_OUT = "groups left out"


STICKY = frozenset(
    {
        NoticeKind.OBSERVING_FAILED,
        NoticeKind.SOURCE_NOT_REACHED,
        NoticeKind.SOURCE_LOST,
        NoticeKind.SOURCE_NOT_RESTARTED,
        NoticeKind.SOURCE_RESTARTED,
        NoticeKind.RECORDING_STOPPED,
        NoticeKind.UPLOAD_FAILED,
        NoticeKind.HOOK_FAILED,
        NoticeKind.SEGMENT_DAMAGED,
        NoticeKind.SEGMENTS_MISSING,
        NoticeKind.LAST_SEGMENT_MISSING,
        NoticeKind.RECORDING_INTERRUPTED,
        NoticeKind.PROFILE_NOT_SHOWN,
    }
)
"""Kinds that stay on the screen until the next notice."""

_SEVERITIES: Mapping[NoticeKind, Severity] = {
    NoticeKind.OBSERVING_FAILED: Severity.RISK,
    NoticeKind.OBSERVING_AGAIN: Severity.GOOD,
    NoticeKind.SOURCE_NOT_REACHED: Severity.RISK,
    NoticeKind.SOURCE_LOST: Severity.RISK,
    NoticeKind.SOURCE_NOT_RESTARTED: Severity.RISK,
    NoticeKind.SOURCE_RESTARTED: Severity.WARN,
    NoticeKind.RECORDING_STOPPED: Severity.RISK,
    NoticeKind.RECORDING_SLOW: Severity.WARN,
    NoticeKind.RECORDING_BUSY: Severity.WARN,
    NoticeKind.KEPT: Severity.GOOD,
    NoticeKind.NOT_KEPT: Severity.WARN,
    NoticeKind.UPLOAD_FAILED: Severity.WARN,
    NoticeKind.UPLOADING_AGAIN: Severity.GOOD,
    NoticeKind.HOOK_FAILED: Severity.WARN,
    NoticeKind.NO_SPEED: Severity.CALM,
    NoticeKind.NOTHING_TO_STEP_TO: Severity.WARN,
    NoticeKind.NOT_RECORDING_YET: Severity.WARN,
    NoticeKind.NO_LATER_EVENT: Severity.CALM,
    NoticeKind.NO_EARLIER_EVENT: Severity.CALM,
    NoticeKind.RECORDING_ENDS: Severity.CALM,
    NoticeKind.REPLAY_FAILED: Severity.RISK,
    NoticeKind.BEFORE_RECORDING: Severity.WARN,
    NoticeKind.AFTER_RECORDING: Severity.WARN,
    NoticeKind.SEGMENT_DAMAGED: Severity.WARN,
    NoticeKind.SEGMENTS_MISSING: Severity.WARN,
    NoticeKind.LAST_SEGMENT_MISSING: Severity.WARN,
    NoticeKind.RECORDING_INTERRUPTED: Severity.RISK,
    NoticeKind.RECORDING_AGAIN: Severity.GOOD,
    NoticeKind.PROPERTIES_UNUSED: Severity.CALM,
    NoticeKind.PROFILE_NOT_SHOWN: Severity.WARN,
    NoticeKind.GROUPS_AWAITED: Severity.CALM,
    NoticeKind.GROUPS_LEFT_OUT: Severity.WARN,
}


class Notice(Struct, frozen=True):
    """A report about kview itself, with values by name."""

    kind: NoticeKind
    values: Mapping[str, NoticeValue] = field(default_factory=dict)

    @property
    def severity(self) -> Severity:
        """How urgent the notice is."""
        return _SEVERITIES[self.kind]

    @property
    def sticky(self) -> bool:
        """Whether the notice stays on the screen until the next one."""
        return self.kind in STICKY
