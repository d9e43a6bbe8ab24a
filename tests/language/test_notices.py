"""Notices and their words agree: every place that makes one gives what the words ask for."""

import ast
from string import Formatter

from kview.errors import ErrorKind, KviewError
from kview.language.notices import WORDS, text
from kview.model.notices import Notice, NoticeKind
from tests.language.sources import trees
from tests.language.turns import banned_turns


def placeholders(kind: NoticeKind) -> set[str]:
    """The values that a notice has to give, which the path of the log file is not one of."""
    return {name for _, name, _, _ in Formatter().parse(WORDS[kind]) if name is not None} - {"log"}


def sites() -> list[tuple[str, NoticeKind]]:
    """Every place in kview that names a kind of notice, outside the tables of their words and severities."""
    found = []
    for name, tree in trees("NoticeKind"):
        if name in ("model/notices.py", "language/notices.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "NoticeKind":
                found.append((f"{name}:{node.lineno}", NoticeKind[node.attr]))
    return found


def test_every_kind_has_words_and_a_severity_and_is_used_somewhere() -> None:
    assert set(WORDS) == set(NoticeKind) == {kind for _, kind in sites()}
    for kind in NoticeKind:
        assert Notice(kind).severity


def calls() -> list[tuple[str, NoticeKind, set[str]]]:
    """Notices that are made with their values in place: where, the kind, the names."""
    found = []
    for name, tree in trees("Notice"):
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            if call.func.id != "Notice" or not isinstance(call.args[0], ast.Attribute):
                continue
            values = call.args[1] if len(call.args) > 1 else ast.Dict([], [])
            if isinstance(values, ast.Dict):
                names = {key.value for key in values.keys if isinstance(key, ast.Constant)}
                where = f"{name}:{call.lineno}"
                found.append((where, NoticeKind[call.args[0].attr], {str(name) for name in names}))
    return found


def test_a_notice_has_the_values_that_its_words_name() -> None:
    made = calls()
    assert made
    for where, kind, names in made:
        assert names == placeholders(kind), where


def test_words_are_plain_english() -> None:
    for kind in NoticeKind:
        assert WORDS[kind] and not WORDS[kind].endswith(".") and not banned_turns(WORDS[kind]), kind


def test_an_error_in_a_notice_is_said_with_what_to_do_and_a_loss_without() -> None:
    lost = KviewError(ErrorKind.CLUSTER_KILLED, signal="SIGKILL").facts
    error = KviewError(ErrorKind.PORT_IN_USE, address="127.0.0.1:9092").facts
    said = text(Notice(NoticeKind.SOURCE_NOT_RESTARTED, {"lost": lost, "error": error, "wait_s": 4.0}))
    assert said == (
        "the simulated cluster was killed (SIGKILL); restart failed: 127.0.0.1:9092 is in"
        " use: choose another port, or leave it out to use free ports; retrying in 4 s"
    )
