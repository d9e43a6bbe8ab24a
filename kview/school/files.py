"""Lessons in files: kview's own, and the user's in `demos/` of the configuration folder."""

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

import msgspec

from kview.config.references import read_file
from kview.errors import BadUse, ErrorKind
from kview.school.acts import act, pressed
from kview.school.captions import figures_in, sentences
from kview.school.expectations import duration_ms, expectation
from kview.school.figures import NotAFigure, parse
from kview.school.folders import lesson_folders
from kview.school.lesson import MOST_SENTENCES, Lesson, LessonWorld, Question, Step
from kview.school.look import mark
from kview.school.worlds import world

MOST_NEAR = 3
"""The most names that an error suggests."""

MOST_LESSONS = 200
"""Limit of files read per folder. It takes effect only if the folder is the wrong one."""

_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_PATH = re.compile(r"at `\$\.?([^`]*)`")
_PLACE = re.compile(r"\(at (line \d+, column \d+|end of document)\)")
_STRUCTS = (Lesson, LessonWorld, Step, Question)


def lesson_files() -> dict[str, Path]:
    """Return the files of all lessons by name, kview's first. A user's replaces one of that name."""
    found = {}
    for folder in lesson_folders():
        if folder.is_dir():
            for path in sorted(folder.glob("*.toml"))[:MOST_LESSONS]:
                found[re.sub(r"^\d+-", "", path.stem)] = path
    return found


def lesson_of(name: str) -> Lesson:
    """Return the lesson of a name. Raises BadUse if there is none, or if its file is wrong."""
    files = lesson_files()
    if name not in files:
        raise unknown_lesson(name, tuple(files))
    return read_lesson(files[name])


def unknown_lesson(name: str, known: Collection[str]) -> BadUse:
    """Return the error for a name that no lesson has: similar names or, without any, all names."""
    near = get_close_matches(name, known, MOST_NEAR)
    if near:
        return BadUse(ErrorKind.LESSON_MISSPELT, name=name, nearest=" or ".join(near))
    return BadUse(ErrorKind.LESSON_UNKNOWN, name=name, known=tuple(known))


def read_lesson(path: Path) -> Lesson:
    """Return the lesson in a file. Raises BadUse, with the line that is wrong."""
    data = read_file(path)
    file = str(path)
    try:
        text = data.decode()
        lesson = msgspec.toml.decode(data, type=Lesson)
    except msgspec.ValidationError as error:
        raise _unlike(file, data.decode(), str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = _PLACE.search(str(error))
        raise BadUse(ErrorKind.LESSON_GARBLED, file=file, reason=place[1] if place else "not UTF-8") from None
    for words, wrong in _wrong(lesson):
        line = _line_of(text, words)
        raise BadUse(ErrorKind.LESSON_WRONG, file=file, line=line, reason=wrong.reason, hint=wrong.hint)
    return lesson


def _wrong(lesson: Lesson) -> Iterator[tuple[str, NotAFigure]]:
    """Yield what is wrong with the words of a lesson, each with the words."""
    try:
        world(lesson.world)
        if duration_ms(lesson.world.watched) is None:
            raise NotAFigure(f"{lesson.world.watched!r} is not a duration", "write 60s")
    except NotAFigure as wrong:
        yield "[world]", wrong
    for step in lesson.steps:
        for words in _words(step):
            try:
                _check(step, words)
            except NotAFigure as wrong:
                yield words, wrong


def _words(step: Step) -> Iterator[str]:
    yield step.caption
    yield from (*step.look, *step.does, *step.expect, *step.compare)
    if step.press:
        yield step.press
    if step.wait:
        yield step.wait
    if step.question is not None:
        yield step.question.text


def _check(step: Step, words: str) -> None:
    """Raise NotAFigure if `words`, of that step, do not mean anything."""
    if words == step.caption:
        if not 1 <= sentences(words) <= MOST_SENTENCES:
            raise NotAFigure("the caption has no sentence, or too many", f"write 1 to {MOST_SENTENCES}")
        figures_in(words)
    elif words in step.look:
        mark(words)
    elif words in step.does:
        act(words)
    elif words in step.expect:
        expectation(words)
    elif words in step.compare:
        _, rest = parse(words.split())
        if rest:
            raise NotAFigure(f"unexpected {' '.join(rest)!r} after the figure", "remove it")
    elif words == step.press:
        pressed(words)
    elif words == step.wait:
        if duration_ms(words) is None:
            raise NotAFigure(f"{words!r} is not a duration", "write 12s")
    elif step.question is not None and not 1 <= step.question.right <= len(step.question.answers):
        raise NotAFigure("right is not the number of an answer", f"write 1 to {len(step.question.answers)}")


def _unlike(file: str, text: str, error: str) -> BadUse:
    """Return the error for a file of another shape."""
    unknown = _UNKNOWN.search(error)
    if unknown is None:
        path = _PATH.search(error)
        key = path[1].rpartition(".")[2] if path else ""
        key = key.removesuffix("[...]")
        line = _line_of_key(text, key)
        reason = error.partition(" - at")[0]
        hint = f"correct the value of {key}" if key else "correct the file"
        return BadUse(ErrorKind.LESSON_WRONG, file=file, line=line, reason=reason, hint=hint)
    key, line = unknown[1], _line_of_key(text, unknown[1])
    fields = (field.encode_name for one in _STRUCTS for field in msgspec.structs.fields(one))
    known = tuple(dict.fromkeys(fields))
    near = get_close_matches(key, known, 1)
    if near:
        return BadUse(ErrorKind.LESSON_KEY_MISSPELT, file=file, line=line, key=key, nearest=near[0])
    return BadUse(ErrorKind.LESSON_KEY_UNKNOWN, file=file, line=line, key=key, known=known)


def _line_of_key(text: str, key: str) -> int:
    name = re.compile(rf"(?:^|[\s{{,.\[])[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
    return next((number for number, line in enumerate(text.splitlines(), 1) if key and name.search(line)), 1)


def _line_of(text: str, words: str) -> int:
    first = words.splitlines()[0] if words else ""
    return next((number for number, line in enumerate(text.splitlines(), 1) if first and first in line), 1)
