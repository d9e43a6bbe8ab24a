"""Keep a short list of turns that nobody says out of the texts, docstrings and comments of kview/, the README
and the help of every command."""

import ast
import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from kview.cli.group import COMMANDS, kview
from tests.language.turns import BANNED

ROOT = Path(__file__).resolve().parents[1]

ANY = re.compile("|".join(f"(?:{turn})" for turn in BANNED), re.IGNORECASE)
"""Whether there is a banned turn at all, which is asked of tens of thousands of texts."""


class Text(NamedTuple):
    """What a person reads in one go."""

    where: str
    """The file, or the command."""
    line: int
    """Its first line."""
    text: str


class Hit(NamedTuple):
    """A banned turn."""

    where: str
    line: int
    words: str
    """The turn, with the words around it."""
    instead: str

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: …{self.words}… (say: {self.instead})"


def hits(read: Text) -> Iterator[Hit]:
    """The banned turns in a text, also where one is broken over two lines."""
    if not ANY.search(" ".join(read.text.split())):
        return
    words = [(found[0], read.text.count("\n", 0, found.start())) for found in re.finditer(r"\S+", read.text)]
    joined = " ".join(word for word, _ in words)
    begins = list(itertools.accumulate((len(word) + 1 for word, _ in words), initial=0))
    for turn, instead in BANNED.items():
        for found in re.finditer(turn, joined, re.IGNORECASE):
            line = read.line + words[bisect_right(begins, found.start()) - 1][1]
            around = joined[max(0, found.start() - 30) : found.end() + 20]
            yield Hit(read.where, line, around, instead)


def texts_of_code(where: str, source: str) -> Iterator[Text]:
    """The string literals and docstrings of a module, and its comments, those of successive lines as one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(where, node.lineno, node.value)
    block: list[str] = []
    for number, line in enumerate((*source.splitlines(), ""), 1):
        _, sign, comment = line.partition("#")  # of one in a string, too, which is only read once more
        if sign:
            block.append(comment.lstrip("#: "))
        elif block:
            yield Text(where, number - len(block), "\n".join(block))
            block = []


def everything_read() -> Iterator[Text]:
    """All that is scanned."""
    for path in sorted((ROOT / "kview").rglob("*.py")):
        yield from texts_of_code(str(path.relative_to(ROOT)), path.read_text())
    yield Text("README.md", 1, (ROOT / "README.md").read_text())
    for words in ([], *([name] for name in sorted(COMMANDS))):
        shown = CliRunner().invoke(kview, [*words, "--help"], prog_name="kview")
        assert shown.exit_code == 0, shown.output
        yield Text(" ".join(["kview", *words, "--help"]), 1, shown.output)


@pytest.mark.parametrize(
    "fine",
    [
        "it is no longer there",
        "there is no recording yet",
        "where there is no answer",
        "has no fault",
        "is no more than a second old",
        "she told me; the cluster is told to end",
        "panels side by side, besides the last",
        "anewly",
        "gone together",
    ],
)
def test_plain_english_is_left_alone(fine: str) -> None:
    assert [*hits(Text("here", 1, fine))] == []


@pytest.mark.parametrize(
    "banned",
    [
        "'x' is no recording",
        "Where that is no valid name",
        "These are no messages",
        "written anew",
        "stands beside the table",
        "the screen is told",
        "can be gone to",
        "whoever wrote it",
        "the first part thereof",
        "recorded on a tape",
    ],
)
def test_a_banned_turn_is_found(banned: str) -> None:
    assert len([*hits(Text("here", 1, banned))]) == 1


def test_a_hit_names_its_file_line_and_words() -> None:
    source = (
        '"""Fine.\n\nThe recording is\nno recording."""\n\nX = 1  # drawn\n# anew\nY = f"{X} is told of"\n'
    )
    found = sorted(hit for text in texts_of_code("kview/x.py", source) for hit in hits(text))
    assert [(hit.where, hit.line) for hit in found] == [("kview/x.py", line) for line in (3, 7, 8)]
    assert "recording is no recording." in found[0].words and "drawn anew" in found[1].words


def test_nothing_that_a_person_reads_has_a_banned_turn() -> None:
    found = [str(hit) for text in everything_read() for hit in hits(text)]
    if found:
        pytest.fail(f"{len(found)} turns that nobody says:\n" + "\n".join(found), pytrace=False)
