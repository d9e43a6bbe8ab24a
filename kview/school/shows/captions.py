"""The caption of a lesson's step. All functions here are pure."""

from collections.abc import Sequence

from kview.language import glyphs
from kview.model.units import UNKNOWN
from kview.school.conduct import Conduct, Phase
from kview.school.expectations import Expectation, Operator
from kview.school.figures import Figure
from kview.school.lesson import Question
from kview.school.watching import Watch
from kview.school.words import demo as said
from kview.school.words.expectations import between, expected, short_noun
from kview.tui.text import Role
from kview.tui.widgets.caption import Paragraph

MOST_CHECKS = 3
"""The most expectations that are listed at a time."""


def sentence(expectation: Expectation) -> str:
    """Return an expectation in words."""
    figure = expectation.figure
    return expected(
        figure.subject, figure.of, figure.name, figure.at, expectation.operator, expectation.values
    )


def sentences(several: Sequence[Expectation]) -> list[str]:
    """Return a sentence for each expectation. At least and at most for the same figure make one sentence."""
    bounds: dict[Figure, dict[Operator, str]] = {}
    for expectation in several:
        if expectation.operator in (Operator.AT_LEAST, Operator.AT_MOST):
            bounds.setdefault(expectation.figure, {})[expectation.operator] = expectation.values[0]
    return [_within(expectation, bounds.get(expectation.figure, {})) for expectation in several]


def _within(expectation: Expectation, bounds: dict[Operator, str]) -> str:
    if expectation.operator not in bounds or len(bounds) == 1:
        return sentence(expectation)
    figure, least, most = expectation.figure, bounds[Operator.AT_LEAST], bounds[Operator.AT_MOST]
    return between(figure.subject, figure.of, figure.name, figure.at, least, most)


def paragraphs(
    conduct: Conduct, prompt: str, way_back: str, again: tuple[str, str], now_ms: int
) -> list[Paragraph]:
    """Return what is said about the step that a lesson is at.

    `prompt` says what to press, `way_back` how to end the faults that were not asked for, and `again` are the
    key that causes a fault which was ended too early, and the one that starts the demo again.
    """
    if conduct.phase is Phase.STARTING:
        return [Paragraph(said.STARTING, Role.DIM)]
    played, step = conduct.played[-1], conduct.staged.step
    # Who has answered has read it: it goes before the reason why the answer was right.
    body = [Paragraph(played.caption, rank=4 if played.answered else 0)]
    if conduct.is_replaced:
        return [*body, Paragraph(said.replaced(again[1]), Role.WARN, glyphs.UP)]
    question = step.question
    if question is not None and conduct.phase is Phase.QUESTION:
        body += asked(question)
    elif question is not None and played.answered:
        body.append(answered(question, played.answered))
    if conduct.phase is Phase.PRESS:
        body.append(Paragraph(prompt, Role.KEY, glyphs.PLAYING))
    if conduct.refused:
        body.append(Paragraph(said.refused(conduct.refused), Role.WARN, glyphs.UP))
    if conduct.missing:
        body.append(Paragraph(said.ended(conduct.missing, *again), Role.WARN, glyphs.UP))
    if conduct.extra:
        body.append(Paragraph(said.not_asked(conduct.extra, way_back), Role.WARN, glyphs.UP))
    return [*body, *checks(conduct, now_ms)]


def asked(question: Question) -> list[Paragraph]:
    """Return a question and its answers."""
    answers = tuple((str(at), text) for at, text in enumerate(question.answers, 1))
    return [
        Paragraph(question.text, Role.BRIGHT, "?", sign_role=Role.KEY),
        Paragraph("", Role.TEXT, choices=answers),
    ]


def answered(question: Question, chosen: int) -> Paragraph:
    """Return whether an answer was right, and why."""
    is_right = chosen == question.right
    text = said.verdict(is_right, question.answers[question.right - 1], question.because)
    return Paragraph(text, Role.GOOD if is_right else Role.WARN, glyphs.YES if is_right else glyphs.DEAD)


def dial(watch: Watch, now_ms: int, left_ms: int) -> str:
    """Return the sign of how much of the time has passed that the step has, `left_ms` of which are left."""
    passed_ms = max(0, now_ms - watch.began_ms)
    at = len(glyphs.DIALS) * passed_ms // max(1, passed_ms + left_ms)
    return glyphs.DIALS[min(at, len(glyphs.DIALS) - 1)]


def checks(conduct: Conduct, now_ms: int) -> list[Paragraph]:
    """Return what has come true, what is awaited, and what did not come true in time."""
    watch, results = conduct.watch, []
    if met := list(dict.fromkeys(sentences(conduct.played[-1].met)))[-MOST_CHECKS:]:
        results.append(Paragraph(f" {glyphs.DOT} ".join(met), Role.GOOD, glyphs.YES, rank=3))
    if watch is None or conduct.phase not in (Phase.WATCH, Phase.DONE):
        return results
    if conduct.phase is Phase.WATCH and watch.pending:
        awaited: dict[str, int] = {}
        for expectation, text in zip(watch.pending, sentences(watch.pending), strict=True):
            limit_ms = watch.lasts_ms if expectation.within_ms == UNKNOWN else expectation.within_ms
            awaited[text] = max(watch.began_ms + limit_ms - now_ms, awaited.get(text, 0))
        shown = list(awaited.items())[:MOST_CHECKS]
        longest_ms = max(left_ms for _, left_ms in shown)
        results.append(Paragraph(said.waiting(shown), Role.DIM, dial(watch, now_ms, longest_ms), rank=2))
    elif conduct.phase is Phase.WATCH and (left_ms := watch.began_ms + watch.lasts_ms - now_ms) > 0:
        held = list(dict.fromkeys(sentences(watch.held)))[:MOST_CHECKS]
        sign = dial(watch, now_ms, left_ms)
        results.append(Paragraph(said.watching(held, left_ms), Role.DIM, sign, rank=2))
    for expectation in watch.unmet[:1]:
        results.append(Paragraph(said.missed(sentence(expectation)), Role.WARN, glyphs.UP, rank=1))
    # What a step without an act waits for may have happened before it began: then nothing has changed.
    did = conduct.staged.key is not None or bool(conduct.staged.acts)
    is_done = conduct.phase is Phase.DONE and did
    if changes := [change for change in conduct.changes() if is_done or change.before != change.after]:
        words = [
            said.change(short_noun(f.subject, f.of, f.name, f.at), change.before, change.after)
            for change in changes
            for f in (change.figure,)
        ]
        results.append(Paragraph(f" {glyphs.DOT} ".join(words), Role.BRIGHT, glyphs.ARROW, rank=2))
    return results
