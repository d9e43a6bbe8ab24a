"""Avro's schemas: from their JSON to types that refer to each other (Avro's specification 1.12, Schema
Declaration)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kview.decode.errors import NotASchema, full_name

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
MOST_TYPES = 20_000
"""Limit of the types of a schema."""
MOST_DEPTH = 100
"""Limit of how deep a schema is nested."""
MOST_SCALE = 1_000
"""Limit of a decimal's digits behind the point."""
_NAMED = ("record", "error", "enum", "fixed")


@dataclass(slots=True, eq=False)
class AvroType:
    """A type. `kind` is Avro's word for it: a primitive type, record, enum, fixed, array, map or union."""

    kind: str
    name: str = ""
    fields: list[tuple[str, "AvroType"]] = field(default_factory=list)
    """A record's fields, a union's branches, or the items of an array or a map."""
    symbols: tuple[str, ...] = ()
    size: int = 0
    """The bytes of a fixed."""
    logical: str = ""
    """The logical type, '' if there is none that fits the type: readers ignore others."""
    scale: int = 0


_LOGICAL: Mapping[str, frozenset[str]] = MappingProxyType({
    "bytes": frozenset({"decimal"}),
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset({
        "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
        "local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos",
    }),
})  # fmt: skip


def parsed(text: str, references: Iterable[str] = ()) -> AvroType:
    """Return the type that a schema describes. `references` are the schemas that it needs, in their order.

    Raises NotASchema.
    """
    parser = _Parser()
    for reference in references:
        parser.top(reference)
    return parser.top(text)


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self._left = MOST_TYPES

    def top(self, text: str) -> AvroType:
        bare = text.strip()
        if bare in PRIMITIVES:  # as Java's parser takes it, without quotes
            return AvroType(bare)
        try:
            return self._type(json.loads(text), "", 0)
        except (ValueError, RecursionError):
            raise NotASchema from None

    def _type(self, described: Any, space: str, depth: int) -> AvroType:
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            raise NotASchema
        if isinstance(described, str):
            return self._by_name(described, space)
        if isinstance(described, list):
            return AvroType("union", fields=[("", self._type(one, space, depth + 1)) for one in described])
        if not isinstance(described, dict):
            raise NotASchema
        kind = described.get("type")
        if isinstance(kind, dict | list):  # {"type": {"type": "array", …}}
            return self._type(kind, space, depth + 1)
        if kind in _NAMED:
            return self._of_name(kind, described, space, depth)
        if kind in ("array", "map"):
            items = self._type(described.get("items" if kind == "array" else "values"), space, depth + 1)
            return AvroType(kind, fields=[("", items)])
        if not isinstance(kind, str):
            raise NotASchema
        if kind not in PRIMITIVES:
            return self._by_name(kind, space)
        logical = described.get("logicalType")
        if isinstance(logical, str) and logical in _LOGICAL.get(kind, ()):
            return _with_logical(AvroType(kind), logical, described)
        return AvroType(kind)

    def _by_name(self, name: str, space: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        found = self._named.get(name if "." in name or not space else f"{space}.{name}")
        found = found or self._named.get(name.removeprefix("."))
        if found is None:
            raise NotASchema
        return found

    def _of_name(self, kind: str, described: dict[str, Any], space: str, depth: int) -> AvroType:
        name, own_space = described.get("name"), described.get("namespace")
        if not isinstance(name, str) or not name:
            raise NotASchema
        own_space = own_space if isinstance(own_space, str) else space
        full = full_name(name if "." in name or not own_space else f"{own_space}.{name}").removeprefix(".")
        made = AvroType("record" if kind == "error" else kind, full)
        self._named[full] = made
        if kind == "enum":
            symbols = described.get("symbols")
            if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
                raise NotASchema
            made.symbols = tuple(symbols)
        elif kind == "fixed":
            size, logical = described.get("size"), described.get("logicalType")
            if not isinstance(size, int) or size < 0:
                raise NotASchema
            made.size = size
            if logical == "decimal" or (logical, size) in (("duration", 12), ("uuid", 16)):
                _with_logical(made, str(logical), described)
        else:
            self._fields(made, described.get("fields"), full.rpartition(".")[0], depth)
        return made

    def _fields(self, made: AvroType, fields: Any, space: str, depth: int) -> None:
        if not isinstance(fields, list):
            raise NotASchema
        for each in fields:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise NotASchema
            made.fields.append((each["name"], self._type(each.get("type"), space, depth + 1)))


def _with_logical(made: AvroType, logical: str, described: dict[str, Any]) -> AvroType:
    """Return a type with a logical type, without it if it is not valid: readers ignore it then."""
    if logical == "decimal":
        scale = described.get("scale", 0)
        if not isinstance(scale, int) or not 0 <= scale <= MOST_SCALE:
            return made
        made.scale = scale
    made.logical = logical
    return made
