"""What a reader has to know about a report's figures, in sentences."""

from kview.language import glyphs, reports
from kview.model.report import NoteKind, Report

MOST_OF_A_KIND = 5
"""The most notes of one kind that people are shown. Of a thousand recordings, hundreds can have the same."""

_FIRST = (NoteKind.NO_MATCH, NoteKind.LEFT_OUT, NoteKind.SEGMENT_DAMAGED, NoteKind.SEGMENT_GONE)
"""What is missing comes first, then the rest as it was found."""


def sentences(report: Report) -> list[str]:
    """Return the notes of a report, each once, those of one kind together, and how many are left out."""
    of_kind: dict[NoteKind, dict[str, None]] = {kind: {} for kind in _FIRST}
    for period in (report.period, report.against):
        for note in period.notes if period is not None else ():
            of_kind.setdefault(note.kind, {})[glyphs.printable(reports.note(note))] = None
    texts = []
    for said in of_kind.values():
        texts += list(said)[:MOST_OF_A_KIND]
        if (more := len(said) - MOST_OF_A_KIND) > 0:
            texts.append(reports.more_notes(more))
    return texts
