"""Protobuf's language (protobuf.dev, Language Specification): from a file's text to message types.

Only what decoding needs is read: messages, enums, fields and their types. Options, services, reserved numbers
and extensions are passed over. Registries that know no serialized form give this text.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kview.decode.descriptors import (
    MOST_DEPTH,
    MOST_TYPES,
    Message,
    ProtoField,
    ProtoFile,
    Type,
    resolve,
    well_known,
)
from kview.decode.errors import NotASchema, full_name

_TOKEN = re.compile(
    r"""//[^\n]*|/\*(?:.*?\*/|(?P<open>))|\s+|(?P<word>[A-Za-z_.][A-Za-z0-9_.]*)|(?P<number>[0-9][0-9A-Za-z.]*)"""
    r"""|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<quote>["'])|(?P<mark>[^\s])""",
    re.DOTALL,
)
_SCALARS: Mapping[str, Type] = MappingProxyType({
    kind.name.lower(): kind for kind in Type if kind not in (Type.GROUP, Type.MESSAGE, Type.ENUM)
})  # fmt: skip
_LABELS = ("optional", "required", "repeated")
_OPENS, _CLOSES = frozenset("{[(<"), frozenset("}])>")


def parsed(text: str, references: Sequence[str] = ()) -> ProtoFile:
    """Return the file that a text describes, with what the files that it imports describe.

    Raises NotASchema.
    """
    made = well_known()
    for each in (*references, text):
        made.messages = []
        _Parser(made, each).file()
    resolve(made)
    return made


class _Parser:
    def __init__(self, file: ProtoFile, text: str) -> None:
        self._file = file
        self._tokens: list[str] = []
        for match in _TOKEN.finditer(text):
            if match.lastgroup in ("open", "quote"):  # without an end, which is not looked for a second time
                raise NotASchema
            if match.lastgroup is not None:
                self._tokens.append(match[0])
        self._at = 0
        self._left = MOST_TYPES

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise NotASchema
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise NotASchema

    def _pass_over(self) -> None:
        """Pass over a statement, up to its semicolon or behind its block."""
        depth = 0
        while True:
            token = self._next()
            if token in _OPENS:
                depth += 1
            elif token in _CLOSES:
                depth -= 1
                if depth < 0:
                    raise NotASchema
                if depth == 0 and token == "}" and self._peek() != ";":
                    return
            elif token == ";" and depth == 0:
                return

    def _count(self, depth: int = 0) -> None:
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            raise NotASchema

    def file(self) -> None:
        """Add what the file describes."""
        prefix = ""
        while self._peek():
            word = self._next()
            if word == "package":
                prefix = f"{self._next()}."
                self._expect(";")
            elif word == "message":
                self._file.messages.append(self._message(prefix, 0))
            elif word == "enum":
                self._enum(prefix)
            elif word in ("syntax", "edition", "import", "option", "extend", "service"):
                self._pass_over()
            elif word != ";":
                raise NotASchema

    def _message(self, prefix: str, depth: int) -> Message:
        self._count(depth)
        made = Message(full_name(prefix + self._next()))
        self._file.by_name[made.name] = made
        self._expect("{")
        self._body(made, depth)
        return made

    def _body(self, made: Message, depth: int) -> None:
        scope = f"{made.name}."
        while (word := self._next()) != "}":
            if word == "message" and self._tokens[self._at + 1 : self._at + 2] == ["{"]:
                made.nested.append(self._message(scope, depth + 1))
            elif word == "enum" and self._tokens[self._at + 1 : self._at + 2] == ["{"]:
                self._enum(scope)
            elif word == "oneof" and self._tokens[self._at + 1 : self._at + 2] == ["{"]:
                self._next()
                self._expect("{")
                self._count(depth)
                self._body(made, depth + 1)
            elif word == "map" and self._peek() == "<":
                self._map(made)
            elif word in ("option", "extensions", "reserved", "extend") and self._peek() not in ("=", "."):
                self._pass_over()
            elif word != ";":
                self._field(made, word, depth)

    def _field(self, made: Message, word: str, depth: int) -> None:
        self._count()
        repeated = word == "repeated"
        kind = self._next() if word in _LABELS else word
        name = self._next()
        self._expect("=")
        number = self._number()
        if kind == "group" and self._tokens[self._at : self._at + 1] != [";"]:
            while self._peek() not in ("{", ""):
                self._next()
            group = Message(full_name(f"{made.name}.{name}"))
            self._file.by_name[group.name] = group
            made.nested.append(group)
            self._expect("{")
            self._count(depth)
            self._body(group, depth + 1)
            made.fields[number] = ProtoField(name.lower(), Type.GROUP, repeated, f".{group.name}")
            return
        self._pass_over()
        made.fields[number] = self._of(kind, name, repeated, made.name)

    def _of(self, kind: str, name: str, repeated: bool, scope: str) -> ProtoField:
        """Return a field. Of a name it is not known yet whether it is a message's or an enum's."""
        if kind in _SCALARS:
            return ProtoField(name, _SCALARS[kind], repeated)
        return ProtoField(name, Type.MESSAGE, repeated, full_name(kind), scope=scope)

    def _map(self, made: Message) -> None:
        self._count()
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        name = self._next()
        self._expect("=")
        number = self._number()
        self._pass_over()
        camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
        entry = Message(full_name(f"{made.name}.{camel}Entry"), is_map_entry=True)
        entry.fields[1] = self._of(key, "key", False, made.name)
        entry.fields[2] = self._of(value, "value", False, made.name)
        self._file.by_name[entry.name] = entry
        made.nested.append(entry)
        made.fields[number] = ProtoField(name, Type.MESSAGE, True, f".{entry.name}")

    def _enum(self, prefix: str) -> None:
        self._count()
        name, symbols = full_name(prefix + self._next()), dict[int, str]()
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved") and self._peek() != "=":
                self._pass_over()
            elif word != ";":
                self._count()
                self._expect("=")
                sign = -1 if self._peek() == "-" else 1
                self._at += sign < 0
                symbols.setdefault(sign * self._number(), word)
                self._pass_over()
        self._file.enums[name] = symbols

    def _number(self) -> int:
        try:
            return int(self._next(), 0)
        except ValueError:
            raise NotASchema from None
