"""A profile's masks: what nobody may see of the records of a topic, as texts such as `value.card.*`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kview.model.masking import ANY_DEPTH, Mask, Masks, Part, joined, normal

KEY = "mask"
"""The key of a profile, which is a table by topic."""
ALL = "all"
_TOPICS = re.compile(r"[A-Za-z0-9._*?-]{1,249}")
_SEGMENT = re.compile(
    r"[^\x00-\x20\x7f.\[\](){}|^$\\/?\"'=,:;<>!](?:[^\x00-\x1f\x7f.\[\](){}|^$\\/?\"'=,:;<>!]*)"
)
_LIKE_A_PART = frozenset({"keys", "values", "header", "all"})
"""Names that somebody writes who means a part."""
_ITEMS = "[]"


class NotAMask(ValueError):
    """Raised for what is not a mask. Its text is the key in the profile's table of masks."""


def masks(table: Mapping[str, Any]) -> Masks:
    """Return the masks of a profile's table. Raises NotAMask."""
    return Masks(tuple((topics, _mask(topics, held)) for topics, held in _flat("", table)))


def _flat(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield topics and what is held of them. TOML turns keys with dots into tables; this joins them again."""
    for name, held in table.items():
        if isinstance(held, dict):
            if not held:
                raise NotAMask(f"{prefix}{name}")
            yield from _flat(f"{prefix}{name}.", held)
        else:
            yield f"{prefix}{name}", held


def _mask(topics: str, held: Any) -> Mask:
    texts = [held] if isinstance(held, str) else held
    if not _TOPICS.fullmatch(topics) or not isinstance(texts, list) or not texts:
        raise NotAMask(topics)
    return joined(Mask((_pattern(topics, text),)) for text in texts)


def _pattern(topics: str, text: Any) -> tuple[str, ...]:
    """Return the pattern that a text describes: a part of the record, a path that begins with one or with
    `**`, or a name alone, which is that field at any depth."""
    if not isinstance(text, str):
        raise NotAMask(topics)
    if text == ALL:
        return (ANY_DEPTH,)
    names = [name.removesuffix(_ITEMS) for name in text.split(".")]
    spelled = [*names, *map(normal, names)]  # a full-width bracket is a bracket in names that are compared
    if not all(map(_SEGMENT.fullmatch, spelled)) or any(name != name.strip() for name in names):
        raise NotAMask(topics)
    if any("**" in name and name != ANY_DEPTH for name in names):
        raise NotAMask(topics)
    first, *others = names
    if first in (*Part, ANY_DEPTH):
        return (first, *map(normal, others))
    if others or first.casefold() in (*Part, *_LIKE_A_PART):
        raise NotAMask(topics)
    return (ANY_DEPTH, normal(first))


def text_of(pattern: tuple[str, ...]) -> str:
    """Return a pattern as a profile may have it. Names are as they are compared."""
    return ALL if pattern == (ANY_DEPTH,) else ".".join(pattern)
