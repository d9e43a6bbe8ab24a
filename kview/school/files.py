"""Lessons in files: kview's own, and the user's in `demos/` of the configuration folder."""

import os
import re
from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import msgspec

from kview.config.references import read_file
from kview.errors import BadUse, ErrorKind
from kview.school.acts import act, pressed
from kview.school.captions import figures_in, sentences
from kview.school.demos import INCIDENT
from kview.school.expectations import duration_ms, expectation
from kview.school.figures import Figure, NotAFigure, parse
from kview.school.folders import lesson_folders
from kview.school.lesson import MOST_CHARACTERS, MOST_SENTENCES, Lesson, LessonWorld, Question, Step
from kview.school.look import mark
from kview.school.naming import check_act, check_subject
from kview.school.worlds import MOST_MS, world
from kview.simulate.world import World

MOST_NEAR = 3
"""The most names that an error suggests."""

MOST_LESSONS = 200
"""Limit of files read per folder. It takes effect only if the folder is the wrong one."""

MOST_SHOWN = 160
"""So much of a reason or a hint is shown: what it quotes may be as long as the file."""

_NAME = re.compile(r"\w[\w.-]{0,39}")
"""A name that can be typed."""

_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_PATH = re.compile(r"at `\$\.?([^`]*)`")
_PLACE = re.compile(r"\(at (line \d+, column \d+|end of document)\)")
_END = "end of document"
_MISSING = re.compile(r"missing required field `([^`]*)`")
_LENGTH = re.compile(r"Expected `array` of length ([<>]=) (\d+)")
_TEXT_LENGTH = re.compile(r"Expected `str` of length ([<>]=) (\d+)")
_STEP = re.compile(r"\s*\[\[\s*steps\s*\]\]")
_STRUCTS = (Lesson, LessonWorld, Step, Question)


def lesson_files() -> dict[str, Path]:
    """Return the files of all lessons by name, kview's first. A user's replaces one of that name."""
    files: dict[str, Path] = {}
    for folder in lesson_folders():
        if os.path.isdir(folder):  # A folder that may not be read has no lessons.
            paths = (
                path
                for path in folder.glob("*.toml")
                if not path.name.startswith(".") and not path.is_fifo()  # which nobody may write to
            )
            files |= {_name_of(path): path for path in sorted(paths)[:MOST_LESSONS]}
    return files


def _name_of(path: Path) -> str:
    """Return the name of the lesson in a file: the file's, without a number that orders it."""
    return re.sub(r"^\d+-(?=.)", "", path.stem)


def _check_name(path: Path) -> None:
    """Raise BadUse if nothing could start a lesson by the name of its file."""
    name = _name_of(path)
    others = sorted(
        other.name for other in path.parent.glob("*.toml") if _name_of(other) == name and other != path
    )
    if name == INCIDENT:
        wrong = "kview's own demo has the name incident", "rename the file"
    elif not _NAME.fullmatch(name):
        wrong = f"{name!r} is not a name for a demo", "name the file with letters, digits and -"
    elif others and not others[0].startswith("."):
        wrong = f"{others[0]} has the same name, {name}", "rename one of the files"
    else:
        return
    raise _lesson_wrong(str(path), 1, *wrong)


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
    _check_name(path)
    data = read_file(path)
    file, text = str(path), ""
    try:
        text = data.decode()
        lesson = msgspec.toml.decode(data, type=Lesson)
    except msgspec.ValidationError as error:
        raise _unlike(file, text, str(error)) from None
    except RecursionError:
        reason = "it is nested too deeply"
        raise BadUse(ErrorKind.LESSON_GARBLED, file=file, reason=reason) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = _PLACE.search(str(error))
        where = place[1] if place else "not UTF-8"
        if where == _END:
            where = f"line {len(text.splitlines())}: something is not closed or not complete"
        raise BadUse(ErrorKind.LESSON_GARBLED, file=file, reason=where) from None
    for number, words, wrong in _wrong(lesson):
        begins = _step_lines(text)
        line = _line_of(text, words, begins[number] if 0 <= number < len(begins) else 1)
        raise _lesson_wrong(file, line, wrong.reason, wrong.hint)
    return lesson


def _lesson_wrong(file: str, line: int, reason: str, hint: str) -> BadUse:
    reason, hint = (
        text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN // 2]}…{text[-MOST_SHOWN // 2 :]}"
        for text in (reason, hint)
    )
    return BadUse(ErrorKind.LESSON_WRONG, file=file, line=line, reason=reason, hint=hint)


def _wrong(lesson: Lesson) -> Iterator[tuple[int, str, NotAFigure]]:
    """Yield what is wrong with the words of a lesson: the step's number from 0, −1 for the world, the words
    and the error."""
    try:
        lesson_world = world(lesson.world)
        _check_duration(lesson.world.watched)
    except NotAFigure as wrong:
        yield -1, _words_of_world(lesson.world, wrong.reason), wrong
        return
    for words in (lesson.title, lesson.about):
        try:
            _check_shown(words)
        except NotAFigure as wrong:
            yield -1, words, wrong
    for number, step in enumerate(lesson.steps):
        for words, check in _checks(step, lesson_world):
            try:
                check(words)
            except NotAFigure as wrong:
                yield number, words, wrong


def _words_of_world(words: LessonWorld, reason: str) -> str:
    """Return the text of a world's list that a reason is about."""
    listed = (*words.topics, *words.set, *words.producers, *words.groups)
    quoted = re.findall(r"'([^']+)'", reason)
    return next((text for text in listed if any(word in text for word in quoted)), "[world]")


def _checks(step: Step, lesson_world: World) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield the words of a step, each with what raises NotAFigure if they do not mean anything there."""

    def known(figure: Figure) -> None:
        check_subject(lesson_world, figure.subject, figure.of, figure.at)

    def caption(words: str) -> None:
        _check_shown(words)
        if not 1 <= sentences(words) <= MOST_SENTENCES:
            raise NotAFigure("the caption has no sentence, or too many", f"write 1 to {MOST_SENTENCES}")
        if len(words) > MOST_CHARACTERS:
            raise NotAFigure(f"the caption has {len(words)} characters", f"write at most {MOST_CHARACTERS}")
        for figure in figures_in(words):
            known(figure)

    def look(words: str) -> None:
        marked = mark(words)
        if marked.subject:
            check_subject(lesson_world, marked.subject, marked.of)

    def compared(words: str) -> None:
        figure, rest = parse(words.split())
        if rest:
            raise NotAFigure(f"unexpected {' '.join(rest)!r} after the figure", "remove it")
        known(figure)

    def press(words: str) -> None:
        if (command := pressed(words)) is not None:
            check_act(lesson_world, command)

    def expected(words: str) -> None:
        awaited = expectation(words)
        if awaited.within_ms > MOST_MS:
            raise NotAFigure(
                f"{words.rsplit(maxsplit=1)[-1]!r} is too long", f"write at most {MOST_MS // 1000}s"
            )
        known(awaited.figure)

    yield step.caption, caption
    yield from ((words, look) for words in step.look)
    yield from ((words, lambda text: check_act(lesson_world, act(text))) for words in step.does)
    yield from ((words, expected) for words in step.expect)
    yield from ((words, compared) for words in step.compare)
    if step.press:
        yield step.press, press
    if step.wait:
        yield step.wait, _check_duration
    if (question := step.question) is not None:
        yield f"right = {question.right}", partial(_check_question, question)
        yield from ((words, _check_shown) for words in (question.text, *question.answers, question.because))


def _check_duration(words: str) -> None:
    length_ms = duration_ms(words)
    if length_ms is None:
        raise NotAFigure(f"{words!r} is not a duration", "write 12s")
    if length_ms > MOST_MS:
        raise NotAFigure(f"{words!r} is too long", f"write at most {MOST_MS // 1000}s")


def _check_shown(words: str) -> None:
    """Raise NotAFigure if a text has a character that a screen does not show."""
    wrong = next((character for character in " ".join(words.split()) if not character.isprintable()), "")
    if wrong:
        raise NotAFigure(f"the text has a character that cannot be shown, {wrong!r}", "remove it")
    if not words.strip():
        raise NotAFigure("the text is empty", "write a sentence")


def _check_question(question: Question, _: str) -> None:
    if not 1 <= question.right <= len(question.answers):
        raise NotAFigure("right is not the number of an answer", f"write 1 to {len(question.answers)}")


def _unlike(file: str, text: str, error: str) -> BadUse:
    """Return the error for a file of another shape."""
    begin = _line_of_wrong_step(text) if "`$.steps[" in error else 1
    path = _PATH.search(error)
    key = path[1].replace("[...]", "").rpartition(".")[2] if path else ""
    if unknown := _UNKNOWN.search(error):
        return _unknown_key(file, unknown[1], _line_of_key(text, unknown[1], begin))
    line, reason, hint = (
        _line_of_key(text, key, begin),
        error.partition(" - at")[0],
        f"correct the value of {key}",
    )
    if missing := _MISSING.search(error):
        line = begin if key == "steps" else line
        reason, hint = f"{missing[1]} is missing", "add it"
    elif length := _LENGTH.search(error):
        reason = f"the number of {key} is wrong"
        hint = f"write {'at most' if length[1] == '<=' else 'at least'} {length[2]}"
    elif long := _TEXT_LENGTH.search(error):
        is_long = long[1] == "<="
        reason = f"{key} is too long" if is_long else f"{key} is empty"
        hint = f"write at most {long[2]} characters" if is_long else "write a sentence"
    return _lesson_wrong(file, line, reason, hint)


def _unknown_key(file: str, key: str, line: int) -> BadUse:
    fields = (field.encode_name for struct in _STRUCTS for field in msgspec.structs.fields(struct))
    known = tuple(dict.fromkeys(fields))
    near = get_close_matches(key, known, 1)
    if near:
        return BadUse(ErrorKind.LESSON_KEY_MISSPELT, file=file, line=line, key=key, nearest=near[0])
    return BadUse(ErrorKind.LESSON_KEY_UNKNOWN, file=file, line=line, key=key, known=known)


# -- lines, from 1


def _step_lines(text: str) -> list[int]:
    """Return the lines on which the steps begin."""
    return [number for number, line in enumerate(text.splitlines(), 1) if _STEP.match(line)]


def _line_of_wrong_step(text: str) -> int:
    """Return the line on which the first step of another shape begins, 1 if there is none."""
    steps = msgspec.toml.decode(text).get("steps")
    for line, step in zip(_step_lines(text), steps if isinstance(steps, list) else (), strict=False):
        try:
            msgspec.convert(step, Step)
        except msgspec.ValidationError:
            return line
    return 1


def _line_of_key(text: str, key: str, begin: int) -> int:
    """Return the first line from `begin` on that has the key, `begin` if none has."""
    name = re.compile(rf"(?:^|[\s{{,.\[])[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
    return next((at for at, line in _lines(text, begin) if key and name.search(line)), begin)


def _line_of(text: str, words: str, begin: int) -> int:
    """Return the first line from `begin` on that has the first line of the words, `begin` if none has."""
    first = words.splitlines()[0] if words else ""
    return next((at for at, line in _lines(text, begin) if first and first in line), begin)


def _lines(text: str, begin: int) -> list[tuple[int, str]]:
    return list(enumerate(text.splitlines(), 1))[begin - 1 :]
