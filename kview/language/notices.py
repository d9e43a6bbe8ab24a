"""Notices as sentences: what kview reports about itself, on the screen and on standard error."""

from collections.abc import Mapping

from kview.errors import ErrorFacts
from kview.language.errors import message, sentence
from kview.model.notices import Notice, NoticeKind, NoticeValue

LOST = "lost"
"""The value given without its remedy, because the sentence continues with what kview does."""

WORDS: Mapping[NoticeKind, str] = {
    NoticeKind.OBSERVING_FAILED: "an observation failed ({bug}); retrying (details in kview.log)",
    NoticeKind.OBSERVING_AGAIN: "observations work again",
    NoticeKind.SOURCE_LOST: "{lost}; restarting it",
    NoticeKind.SOURCE_NOT_RESTARTED: "{lost}; restart failed: {error}; retrying in {wait_s:.0f} s",
    NoticeKind.SOURCE_RESTARTED: "{lost}; kview has started a fresh cluster",
    NoticeKind.RECORDING_STOPPED: "{error}",
    NoticeKind.RECORDING_SLOW: "the disk is slow: {count} observations were left out of the recording",
    NoticeKind.RECORDING_BUSY: "the recording cannot be kept right now: try again in a moment",
    NoticeKind.KEPT: "recording kept: kview replay {name} shows it",
    NoticeKind.NOT_KEPT: "recording not kept: {error}",
    NoticeKind.UPLOAD_FAILED: "uploading to {place} failed ({reason}); retrying",
    NoticeKind.UPLOADING_AGAIN: "uploads to {place} work again",
    NoticeKind.NO_SPEED: "the speed can be changed only in a replay",
    NoticeKind.NOTHING_TO_STEP_TO: "cannot go to that time: {error}",
    NoticeKind.NOT_RECORDING_YET: "recording has not started yet: try again in a moment",
    NoticeKind.NO_LATER_EVENT: "the recording has no later event",
    NoticeKind.NO_EARLIER_EVENT: "the recording has no earlier event",
    NoticeKind.RECORDING_ENDS: "the recording ends here",
    NoticeKind.REPLAY_FAILED: "the replay failed ({bug}): see kview.log",
}


def text(notice: Notice) -> str:
    """Return the sentence for a notice."""
    return WORDS[notice.kind].format(**{name: _said(name, value) for name, value in notice.values.items()})


def _said(name: str, value: NoticeValue) -> str | int | float:
    if isinstance(value, ErrorFacts):
        return message(value) if name == LOST else sentence(value)
    return value
