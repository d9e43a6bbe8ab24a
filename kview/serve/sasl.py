"""The server's side of the SASL mechanisms PLAIN and SCRAM: tokens of a client, answers to them.

Sources: RFC 4616, RFC 5802, and Kafka's PlainSaslServer and ScramSaslServer.
"""

import base64
import hmac
import re
import secrets
from collections.abc import Callable
from typing import NamedTuple, Protocol

from kview.simulate.scram import ScramCredential, ScramMechanism, keyed_hash, proven

NONCE_BYTES = 24
TEXTS = 3
"""A token of PLAIN has an authorization id, a name and a password."""

_VALUE, _PRINTABLE = r"[\x01-\x2b\x2d-\x7f]+", r"[\x21-\x2b\x2d-\x7e]+"
_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_BASE64 = "(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = f"(?:,[A-Za-z]+={_VALUE})*"
_FIRST = re.compile(
    f"n,(?:a=(?P<authorized>{_SASL_NAME}))?,"
    f"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    f"(?P<bound>c=(?:{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_WITH_TOKEN = re.compile(r",tokenauth=(?i:true)(?:,|$)")

OTHER_AUTHORIZED = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
WRONG_PASSWORD = "Authentication failed: Invalid username or password"


class TokenLogin(NamedTuple):
    """A delegation token: who owns it, when it expires (ms since the epoch), and how a login is checked."""

    owner: str
    expires_ms: int
    credential: ScramCredential


class Refused(Exception):
    """Raised for a login that fails. The client learns why only if there is a message."""


class Exchange(Protocol):
    """The tokens of one login.

    `user` is the client's name once the login has succeeded, '' before. If it logs in with a delegation
    token, `expires_ms` is when that expires, in milliseconds since the epoch.
    """

    user: str
    expires_ms: int | None

    def take(self, token: bytes) -> bytes:
        """Return the answer to the client's next token. Raises Refused."""
        ...


class Plain:
    """A login with PLAIN, which is one token with a name and a password.

    `password_of` returns the password of a user, or None.
    """

    def __init__(self, password_of: Callable[[str], str | None]) -> None:
        self.user = ""
        self.expires_ms: int | None = None
        self._password_of = password_of

    def take(self, token: bytes) -> bytes:
        texts = token.decode(errors="replace").split("\0")
        if len(texts) != TEXTS:
            raise Refused(f"Invalid SASL/PLAIN response: expected {TEXTS} tokens, got {len(texts)}")
        authorized, name, password = texts
        if not name:
            raise Refused("Authentication failed: username not specified")
        if not password:
            raise Refused("Authentication failed: password not specified")
        known = self._password_of(name)
        if known is None or not hmac.compare_digest(known.encode(), password.encode()):
            raise Refused(WRONG_PASSWORD)
        if authorized not in ("", name):
            raise Refused(OTHER_AUTHORIZED)
        self.user = name
        return b""


class Scram:
    """A login with SCRAM, in two tokens.

    `credential_of` returns the credential of a user, or None. A client may log in with a delegation token
    instead: its name is then the token's id. `token_of` returns who owns that, when it expires and its
    credential, or None.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        credential_of: Callable[[str], ScramCredential | None],
        token_of: Callable[[str], TokenLogin | None],
    ) -> None:
        self.user = ""
        self.expires_ms: int | None = None
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._token_of = token_of
        self._owner = ""
        self._credential: ScramCredential | None = None
        self._nonce = ""
        self._exchanged = b""

    def take(self, token: bytes) -> bytes:
        return self._first(token) if self._credential is None else self._final(token, self._credential)

    def _first(self, token: bytes) -> bytes:
        first = _FIRST.fullmatch(token.decode("latin-1"))
        if first is None:
            raise Refused
        name = self._owner = first["name"].replace("=2C", ",").replace("=3D", "=")
        if _WITH_TOKEN.search(first["extensions"]):
            login = self._token_of(name)
            if login is None:
                raise Refused
            self._owner, self.expires_ms, self._credential = login
        else:
            self._credential = self._credential_of(name)
        if self._credential is None:
            raise Refused
        if first["authorized"] not in (None, name):
            raise Refused(OTHER_AUTHORIZED)
        self._nonce = first["nonce"] + secrets.token_urlsafe(NONCE_BYTES)
        salt = base64.b64encode(self._credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._credential.iterations}".encode("latin-1")
        self._exchanged = first["bare"].encode("latin-1") + b"," + answer
        return answer

    def _final(self, token: bytes, credential: ScramCredential) -> bytes:
        final = _FINAL.fullmatch(token.decode("latin-1"))
        if final is None or final["nonce"] != self._nonce:
            raise Refused
        exchanged = self._exchanged + b"," + final["bound"].encode("latin-1")
        if not proven(self._mechanism, credential.stored_key, base64.b64decode(final["proof"]), exchanged):
            raise Refused
        self.user = self._owner
        signature = keyed_hash(self._mechanism, credential.server_key, exchanged)
        return b"v=" + base64.b64encode(signature)
