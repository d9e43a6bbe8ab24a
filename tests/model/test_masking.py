"""Masks: which fields they hide, of which topics, and which filters they refuse."""

from datetime import UTC

import pytest

from kview.config.masks import masks
from kview.language.where import masked as sentence
from kview.model.masking import refused
from kview.model.where import Problem
from kview.where.parse import parse


def test_masks_of_several_patterns_add_up() -> None:
    found = masks({"pay.*": ["value.a"], "pay.eu": "key", "*": ["email"], "pay": {"us": "all"}})
    eu, us, other = found.of("pay.eu"), found.of("pay.us"), found.of("Pay.eu")
    assert eu is not None and us is not None and other is not None
    assert [eu.hides(path) for path in (("value", "a"), ("key",), ("value", "b", "email"))] == [True] * 3
    assert us.is_all and us.hides(("headers", "x")) and us.hides(("key",))
    assert not other.hides(("value", "a")) and other.hides(("headers", "E-Mail"))
    assert masks({"orders": "all"}).of("order") is None
    assert masks({}).of("orders") is None


@pytest.mark.parametrize(
    ("pattern", "hidden", "shown"),
    [
        ("value.card.*", ["value.card.no", "value.card.a.b"], ["value.card", "value.cards", "key.card.no"]),
        ("value.card", ["value.card", "value.CARD.no", "value.c_ard"], ["value", "value.a.card"]),
        ("value.**.no", ["value.no", "value.a.no", "value.a.b.no.c"], ["value.a", "key.no"]),
        ("card.no", [], []),
        ("**.card.no", ["value.card.no", "headers.a.card.no", "key.card.no"], ["value.no", "value.card"]),
        ("value.a.*.b", ["value.a.x.b"], ["value.a.b", "value.a.x.y.b"]),
        ("value.a*c", ["value.abc", "value.A_C"], ["value.ab"]),
        ("key", ["key", "key.a"], ["value.key", "headers.key"]),
        ("**.key", ["value.key", "value.a.key"], ["key"]),
        ("headers.x-id", ["headers.X_Id"], ["headers.x", "value.x-id"]),
        ("headers.*token", ["headers.x:auth:token"], ["headers.auth:x"]),
        ("value.*.card", ["value.joe@example:com.card"], ["value.card"]),
    ],
)
def test_what_a_pattern_hides(pattern: str, hidden: list[str], shown: list[str]) -> None:
    if not hidden:  # a path without a beginning would hide nothing
        for text in (pattern, "value.a［］", "value.a［0］", "value.a．b"):
            with pytest.raises(ValueError, match="t"):
                masks({"t": text})
        return
    mask = masks({"t": pattern}).of("t")
    assert mask is not None
    paths = [[name.replace(":", ".") for name in path.split(".")] for path in hidden + shown]
    assert list(filter(mask.hides, paths)) == paths[: len(hidden)]


@pytest.mark.parametrize(
    ("filter", "field"),
    [
        ("value.email = x", "value.email"),
        ("value.id = 1 and not (value.a[].E-Mail ~ /x/ or key = 7)", "value.a[].E-Mail"),
        ("value.card.no exists", "value.card.no"),
        ("headers.email contains x", "headers.email"),
        ("size > 10", "size"),
        ("value = x", "value"),
        ("value contains x", ""),
        ("value.card exists", ""),
        ("key.id = 1 or headers.trace = x", "headers.trace"),
        ("key.id = 1 or headers.trace exists", ""),
        ("offset > 3 and CANARY", ""),
    ],
)
def test_filters_about_what_is_hidden_are_refused(filter: str, field: str) -> None:
    mask = masks({"t": ["email", "value.card.*"]}).of("t")
    where = parse(filter, UTC)
    assert mask is not None and not isinstance(where, Problem)
    condition = refused(where, mask)
    if not field:
        assert condition is None
        return
    assert condition is not None
    assert sentence(condition, "t").startswith(f"{field} cannot be looked for: the profile masks it in t")
