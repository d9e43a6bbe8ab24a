"""Notices as sentences: what kview reports about itself, on the screen and on standard error."""

from collections.abc import Mapping
from datetime import tzinfo

from kview.config.log import log_path
from kview.errors import ErrorFacts
from kview.language.errors import message, sentence
from kview.language.words import clock, day, plural
from kview.model.notices import Notice, NoticeKind, NoticeValue

COUNT = "count"
"""The value that is a number of observations."""

LOST = "lost"
"""The value given without its remedy, because the sentence continues with what kview does."""

WORDS: Mapping[NoticeKind, str] = {
    NoticeKind.OBSERVING_FAILED: "an observation failed ({bug}); retrying (details in {log})",
    NoticeKind.OBSERVING_AGAIN: "observations work again",
    NoticeKind.SOURCE_NOT_REACHED: "{error}; retrying in {wait_s:.0f} s",
    NoticeKind.SOURCE_LOST: "{lost}; restarting it",
    NoticeKind.SOURCE_NOT_RESTARTED: "{lost}; restart failed: {error}; retrying in {wait_s:.0f} s",
    NoticeKind.SOURCE_RESTARTED: "{lost}; kview has started a fresh cluster",
    NoticeKind.RECORDING_STOPPED: "{error}",
    NoticeKind.RECORDING_SLOW: "the disk is slow: {count} left out of the recording",
    NoticeKind.RECORDING_BUSY: "the recording cannot be kept right now: try again in a moment",
    NoticeKind.KEPT: "recording kept as {name!r}; to open it: kview replay {name}",
    NoticeKind.NOT_KEPT: "recording not kept: {error}",
    NoticeKind.UPLOAD_FAILED: "uploading to {place} failed ({reason}); retrying",
    NoticeKind.UPLOADING_AGAIN: "uploads to {place} work again",
    NoticeKind.HOOK_FAILED: "on-finding failed ({reason}) and was not sent: {text}",
    NoticeKind.NO_SPEED: "the speed can be changed only in a replay",
    NoticeKind.NOTHING_TO_STEP_TO: "cannot go to that time: {error}",
    NoticeKind.NOT_RECORDING_YET: "recording has not started yet: try again in a moment",
    NoticeKind.NO_LATER_EVENT: "the recording has no later event",
    NoticeKind.NO_EARLIER_EVENT: "the recording has no earlier event",
    NoticeKind.RECORDING_ENDS: "the recording ends here",
    NoticeKind.REPLAY_FAILED: "the replay failed ({bug}): see {log}",
    NoticeKind.BEFORE_RECORDING: "{at_ms} is before the recording, which starts at {first_ms}",
    NoticeKind.AFTER_RECORDING: "{at_ms} is after the recording, which ends at {last_ms}",
    NoticeKind.SEGMENT_DAMAGED: "a part of the recording is left out: {error}",
    NoticeKind.SEGMENTS_MISSING: "the recording has nothing from {first_ms} to {last_ms}: missing {folders}",
    NoticeKind.LAST_SEGMENT_MISSING: "the recording has nothing after {last_ms}: missing {folders}",
    NoticeKind.RECORDING_INTERRUPTED: "{lost}; trying again every 10 s",
    NoticeKind.RECORDING_AGAIN: "recording continues: {count} left out since {since_ms}",
    NoticeKind.PROFILE_NOT_SHOWN: "{name} cannot be shown: {error}",
    NoticeKind.GROUPS_AWAITED: "{unread:,} of {groups:,} groups have not been read yet: kview reads a few at"
    " a time, for {limit_s:.0f} s at most",
    NoticeKind.GROUPS_LEFT_OUT: "{unread:,} of {groups:,} groups have not been read after {limit_s:.0f} s:"
    " their lag is not known",
    NoticeKind.PROPERTIES_UNUSED: "kview does not use these settings in {file}: {keys}",
}


MOMENTS = frozenset({"at_ms", "first_ms", "last_ms", "since_ms"})
"""The values that are moments, epoch ms."""


def text(notice: Notice, zone: tzinfo | None = None) -> str:
    """Return the sentence for a notice. Moments are in `zone` (None: the machine's own)."""
    return WORDS[notice.kind].format(
        log=log_path(), **{name: _said(name, value, zone) for name, value in notice.values.items()}
    )


def _said(name: str, value: NoticeValue, zone: tzinfo | None) -> str | int | float:
    if name == COUNT and isinstance(value, int):
        return plural(value, "observation")
    if name in MOMENTS and isinstance(value, int):
        return f"{day(value, zone)} {clock(value, zone, tenths=False)}"
    if isinstance(value, ErrorFacts):
        return message(value) if name == LOST else sentence(value)
    return value
