"""The badge at the top right: whether the cluster answers, and how old the figures are."""

from kview.derive.brokers.silence import answering, late
from kview.derive.view import View
from kview.language import glyphs, words
from kview.model.units import UNKNOWN
from kview.tui.text import Line, Role, Span, line


def badge(view: View, fresh_ms: int, late_ms: int, now_ms: int) -> Line:
    """Return the badge: every broker answers, some do, nobody does, or the view is older than `late_ms`.

    It is green only if the view is at most `fresh_ms` old.
    """
    answers = answering(view)
    age_ms = now_ms - view.snapshot.observation.ended_ms
    if age_ms > late_ms or not (answers.answer or late(view.snapshot.brokers).any()):
        text = "no answer yet"
        if answers.last_ms != UNKNOWN:
            what = "answer" if not answers.answer else "new figures"
            text = f"no {what} for {words.duration(now_ms - answers.last_ms, tenths=False)}"
        return line(Span(f"{glyphs.DEAD} {text} ", Role.RISK))
    if answers.answer < answers.all:
        return line(Span(f"{glyphs.UP} {words.answering(answers.answer, answers.all)} ", Role.WARN))
    seen = f"updated {words.duration(age_ms)} ago "
    if age_ms > fresh_ms:
        return line(Span(f"{glyphs.UP} {seen}", Role.WARN))
    return line(Span(f"{glyphs.OK} ", Role.GOOD), Span(seen, Role.DIM))
