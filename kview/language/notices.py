"""Notices as sentences: what kview reports about itself, on the screen and on standard error."""

from collections.abc import Mapping

from kview.errors import ErrorFacts
from kview.language.errors import message, sentence
from kview.model.notices import Notice, NoticeKind, NoticeValue

LOST = "lost"
"""The value that appears without its remedy, because the sentence continues with what kview does about it."""

WORDS: Mapping[NoticeKind, str] = {
    NoticeKind.OBSERVING_FAILED: "an observation failed ({bug}); trying again, details are in kview.log",
    NoticeKind.OBSERVING_AGAIN: "observing again",
    NoticeKind.SOURCE_LOST: "{lost}; starting it again",
    NoticeKind.SOURCE_NOT_RESTARTED: "{lost}; starting it again failed: {error};"
    " the next attempt is in {wait_s:.0f} s",
    NoticeKind.SOURCE_RESTARTED: "{lost}; kview has started a fresh cluster",
    NoticeKind.RECORDING_STOPPED: "{error}",
    NoticeKind.RECORDING_SLOW: "the disk is slow: {count} observations were left out of the recording",
    NoticeKind.RECORDING_BUSY: "the recording cannot be kept right now: try again in a moment",
    NoticeKind.KEPT: "recording kept: kview replay {name} shows it",
    NoticeKind.NOT_KEPT: "recording not kept: {error}",
    NoticeKind.UPLOAD_FAILED: "uploading to {place} failed ({reason}); trying again",
    NoticeKind.UPLOADING_AGAIN: "uploading to {place} again",
    NoticeKind.NO_SPEED: "the speed can be changed only in a replay",
    NoticeKind.NOTHING_TO_STEP_TO: "cannot show another moment: {error}",
    NoticeKind.NOT_RECORDING_YET: "recording has not begun yet: try again in a moment",
    NoticeKind.NO_LATER_EVENT: "the recording has no later event",
    NoticeKind.NO_EARLIER_EVENT: "the recording has no earlier event",
    NoticeKind.RECORDING_ENDS: "the recording ends here",
    NoticeKind.REPLAY_FAILED: "the replay failed ({bug}): details are in kview.log",
}


def text(notice: Notice) -> str:
    """Return the sentence for a notice."""
    return WORDS[notice.kind].format(**{name: _said(name, value) for name, value in notice.values.items()})


def _said(name: str, value: NoticeValue) -> str | int | float:
    if isinstance(value, ErrorFacts):
        return message(value) if name == LOST else sentence(value)
    return value
