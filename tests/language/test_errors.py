"""Errors and their words agree: every raise site gives what the words ask for, and every kind is raised."""

import ast
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import NamedTuple

from kview.errors import BadUse, ErrorKind, KviewError
from kview.language.errors import WORDS, message, remedy, sentence
from tests.language.sources import texts, trees
from tests.language.turns import banned_turns


class Site(NamedTuple):
    """A call that makes an error: where, and its keywords by kind. No kind: it is not one of ErrorKind's."""

    where: str
    kinds: tuple[ErrorKind, ...]
    names: frozenset[str]


def placeholders(kind: ErrorKind) -> frozenset[str]:
    words = WORDS[kind]
    found = [name for text in words for _, name, _, _ in Formatter().parse(text) if name is not None]
    return frozenset(found) - {"log"}  # the path of the log file, which no error has to give


def kinds_in(node: ast.AST) -> tuple[ErrorKind, ...]:
    """Those of ErrorKind that are named in an expression, as in `ErrorKind.A if hung else ErrorKind.B`."""
    return tuple(
        ErrorKind[part.attr]
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id == "ErrorKind"
    )


def error_classes() -> set[str]:
    """The names of KviewError and of every class that derives from it."""
    bases: Mapping[str, set[str]] = {
        name: {base.strip() for base in of.split(",")}
        for text in texts().values()
        for name, of in re.findall(r"^ *class (\w+)(?:\[.*?\])?\(([^)]*)\)", text, re.MULTILINE)
    }
    found = {"KviewError"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return found


EXIT_ERROR = ("signal", "code")
"""What `exit_error` gives to its two kinds."""


@cache
def sites() -> list[Site]:
    classes = error_classes()
    found = []
    for name, tree in trees(rf"\b(?:exit_error|{'|'.join(classes)})\("):
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            where = f"{name}:{call.lineno}"
            if call.func.id == "exit_error":
                for kind, given in zip(call.args[1:], EXIT_ERROR, strict=True):
                    found.append(Site(where, kinds_in(kind), frozenset({given})))
            elif call.func.id in classes:
                names = frozenset(keyword.arg or "**" for keyword in call.keywords)
                kinds = kinds_in(call.args[0]) if call.args else ()
                found.append(Site(where, kinds, names))
    return found


PASS_KINDS_ON = {"config/children.py": 2, "cli/targets.py": 1}
"""How many calls pass on a kind that others name: those in `exit_error`, and that in `named`."""


def test_every_raise_site_gives_exactly_the_values_that_the_words_name() -> None:
    unnamed = Counter(site.where.partition(":")[0] for site in sites() if not site.kinds)
    assert unnamed == PASS_KINDS_ON, "calls that do not name their kind"
    of_exit_error = [
        site for site in sites() if not site.kinds and site.where.startswith("config/children.py")
    ]
    assert {name for site in of_exit_error for name in site.names} == set(EXIT_ERROR)
    assert not [
        (site.where, kind, site.names, placeholders(kind))
        for site in sites()
        for kind in site.kinds
        if site.names != placeholders(kind)
    ]


def test_every_kind_has_words() -> None:
    assert set(WORDS) == set(ErrorKind)


def test_every_kind_is_raised_somewhere() -> None:
    assert {kind for site in sites() for kind in site.kinds} == set(ErrorKind)


def test_words_are_plain_english() -> None:
    for kind in ErrorKind:
        message, remedy, several = WORDS[kind]
        for text in (message, remedy, *([several] if several else [])):
            assert text == text.strip() and text and not text.endswith("."), kind
            assert not banned_turns(text), kind


def test_a_sentence_says_what_was_wrong_and_what_to_do() -> None:
    error = BadUse(ErrorKind.RACK_UNKNOWN, rack="R9", racks=("R1", "R2"))
    assert message(error) == "there is no rack 'R9'"
    assert remedy(error) == "available racks: R1, R2"
    assert sentence(error) == "there is no rack 'R9': available racks: R1, R2"


def test_an_error_of_another_class_keeps_its_kind_and_values() -> None:
    error = KviewError(ErrorKind.NOTHING_RECORDED, folder="r")
    bad_use = BadUse.of(error)
    assert (bad_use.kind, bad_use.values) == (error.kind, error.values)
    assert bad_use.exit_code == 2


def test_an_error_that_is_explained_in_the_log_says_where_the_log_is() -> None:
    said = sentence(KviewError(ErrorKind.JAVA_ENDED, code=1))
    path = said.removeprefix("Java exited (exit code 1): see the log file ")
    assert Path(path).is_absolute() and path.endswith("kview.log")
