"""Kafka's `sasl.jaas.config`: a login module, a flag, and options."""

import re
from typing import NamedTuple

_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([=;])|([^\s=;"']+))""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}


class NotJaas(ValueError):
    """Raised for a text that is not a login module with its flag and options."""


class LoginModule(NamedTuple):
    """A login module: the last part of its class name, and its options."""

    name: str
    options: dict[str, str]


def parse_jaas(text: str) -> LoginModule:
    """Return the login module in `CLASS required KEY="VALUE" …;`. Raises NotJaas, without the text."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[1][0].lower() not in _FLAGS or tokens[-1] != (";", True):
        raise NotJaas
    options, rest = {}, tokens[2:-1]
    if len(rest) % 3:
        raise NotJaas
    for (key, key_is_sign), equals, (value, value_is_sign) in zip(*[iter(rest)] * 3, strict=True):
        if key_is_sign or value_is_sign or equals != ("=", True):
            raise NotJaas
        options[key] = value
    return LoginModule(tokens[0][0].rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Return the words, and whether each is a symbol: `=` or `;`."""
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotJaas
        at = token.end()
        double, single, sign, bare = token.groups()
        quoted = double if double is not None else single
        if quoted is not None:
            tokens.append((_ESCAPE.sub(lambda escape: _LETTERS.get(escape[1], escape[1]), quoted), False))
        else:
            tokens.append((sign or bare, bool(sign)))
    return tokens
