"""Logins of connections: which requests a client may send before it has logged in, and how long it stays so.

Source: org.apache.kafka.common.security.authenticator.SaslServerAuthenticator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from struct import Struct

from kview.config.secret import Secret
from kview.serve.frames import Garbage
from kview.serve.sasl import Exchange, Plain, Refused, Scram, TokenLogin
from kview.simulate.metadata import MetadataImage
from kview.simulate.scram import ScramCredential, ScramMechanism
from kview.simulate.tokens import credential_of

HANDSHAKE, API_VERSIONS, AUTHENTICATE = 17, 18, 36
HEADERS_FROM = 1
"""The version of SaslHandshake from which on tokens come in SaslAuthenticate requests, not as bare frames."""

TOKEN_BYTES_MAX = 524_288
"""Limit of a frame before the login (Kafka's `sasl.server.max.receive.size`)."""

RENEWAL_US = 1_000_000
"""A login can be renewed once in this time. Kafka answers an earlier attempt as a wrong request."""

ANONYMOUS = "User:ANONYMOUS"
PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *(mechanism.sasl_name for mechanism in ScramMechanism))
CREDENTIALS_KEPT = 1_000
"""Credentials of tokens that are not calculated again at the next login."""
_KEY = Struct(">h")


class Stage(Enum):
    """How far a connection's login is."""

    BEGIN = auto()
    """The client may ask for the versions of APIs once, and name a mechanism."""
    MECHANISM = auto()
    """The client may name a mechanism."""
    TOKENS = auto()
    """The client sends the tokens of its mechanism."""
    IN = auto()
    """The client has logged in."""
    OVER = auto()
    """The login has failed, and the connection ends after a delay. Nothing is handled any more."""


@dataclass(frozen=True, slots=True)
class Logins:
    """What every login to a cluster needs: users of PLAIN, and times in microseconds.

    `session_us` is how long a login counts, 0 for ever (Kafka's `connections.max.reauth.ms`). `delay_us` is
    how long a refusal waits, so that passwords are not tried out
    (`connection.failed.authentication.delay.ms`). `token_key` is what delegation tokens are made with
    (`delegation.token.secret.key`).
    """

    passwords: Mapping[str, Secret]
    session_us: int = 0
    delay_us: int = 100_000
    token_key: Secret | None = None


@dataclass(slots=True)
class Login:
    """The login of one connection. `image` returns the metadata of its broker, `now_us` is the time."""

    logins: Logins
    image: Callable[[], MetadataImage]
    now_us: Callable[[], int]
    principal: str = ANONYMOUS
    stage: Stage = Stage.BEGIN
    bare: bool = False
    """Whether tokens come as frames of their own, after SaslHandshake v0."""
    by_token: bool = False
    """Whether the client has logged in with a delegation token."""
    _mechanism: str = ""
    _before: str = ""
    """The mechanism of the login that is being renewed."""
    _exchange: Exchange | None = field(default=None, repr=False)
    _lifetime_us: int = 0
    _ends_us: int | None = None
    _renewed_us: int = 0

    def admits(self, frame: memoryview) -> bool:
        """Return whether `frame` is a request that is handled as usual. Otherwise it is a token.

        Raises Garbage for a request that a client may not send now.
        """
        if self.stage is Stage.OVER:
            raise Garbage("a request after a refused login")
        if self.stage is Stage.TOKENS and self.bare:
            return False
        if len(frame) < _KEY.size:
            raise Garbage(f"a frame of {len(frame)} bytes")
        (key,) = _KEY.unpack_from(frame)
        if self.stage is Stage.IN:
            if key == HANDSHAKE:
                self._renew()
            elif self._ends_us is not None and self.now_us() > self._ends_us:
                raise Garbage(f"the login of {self.principal} has expired")
        elif key not in _ADMITTED[self.stage]:
            raise Garbage(f"API {key} before a login")
        return True

    def _renew(self) -> None:
        now_us = self.now_us()
        if self._ends_us is not None and now_us - self._renewed_us >= RENEWAL_US:
            self._renewed_us, self._before, self.stage = now_us, self._mechanism, Stage.MECHANISM

    def versions_told(self) -> None:
        """Note that ApiVersions was answered."""
        if self.stage is Stage.BEGIN:
            self.stage = Stage.MECHANISM

    def begin(self, mechanism: str, version: int) -> bool:
        """Begin with a mechanism, named in SaslHandshake of this version. Return whether it is enabled."""
        if mechanism not in MECHANISMS:
            return False
        self.stage, self.bare, self._mechanism = Stage.TOKENS, version < HEADERS_FROM, mechanism
        self._exchange = self._new_exchange(mechanism)
        return True

    def _new_exchange(self, name: str) -> Exchange:
        if name == PLAIN:
            passwords = self.logins.passwords
            return Plain(lambda user: passwords[user].reveal() if user in passwords else None)
        mechanism = next(each for each in ScramMechanism if each.sasl_name == name)
        return Scram(
            mechanism,
            lambda user: self.image().scram.get((user, mechanism)),
            lambda token_id: self._token_login(token_id, mechanism),
        )

    def _token_login(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        token, key = self.image().tokens.get(token_id), self.logins.token_key
        if token is None or key is None:
            return None
        credential = _token_credential(key, token_id, mechanism)
        return TokenLogin(token.owner.name, token.expires_ms, credential)

    def take(self, token: bytes) -> bytes:
        """Return the answer to a token. Raises Refused with the message that is told to the client."""
        assert self._exchange is not None
        if self._before and self._before != self._mechanism:
            raise Refused(
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for"
                f" re-authentication of mechanism '{self._before}'"
            )
        try:
            answer = self._exchange.take(token)
        except Refused as refused:
            if refused.args:
                raise
            during = "re-authentication" if self._before else "authentication"
            message = f"Authentication failed during {during} due to invalid credentials with SASL mechanism"
            raise Refused(f"{message} {self._mechanism}") from None
        if self._exchange.user:
            self._done(f"User:{self._exchange.user}", self._exchange.expires_ms)
        return answer

    def _done(self, principal: str, token_expires_ms: int | None) -> None:
        if self._before and principal != self.principal:
            change = f"{self.principal.replace(':', '.', 1)}: {principal.replace(':', '.', 1)}"
            raise Refused(f"Cannot change principals during re-authentication from {change}")
        self.principal, self.stage, self._exchange, self._before = principal, Stage.IN, None, ""
        self.by_token = token_expires_ms is not None
        now_us, session_us = self.now_us(), self.logins.session_us
        if token_expires_ms is not None:
            left_us = max(0, token_expires_ms * 1000 - now_us)
            session_us = min(session_us or left_us, left_us)
        self._lifetime_us = session_us
        self._ends_us = now_us + session_us if session_us or self.by_token else None

    def hold(self, us: int) -> None:
        """Let the login count for longer, because time passes in which the client could not renew it."""
        if self._ends_us is not None:
            self._ends_us += us

    @property
    def lifetime_ms(self) -> int:
        """How long the login counts, in milliseconds, or 0 for ever, and before there is one."""
        return self._lifetime_us // 1000 if self.stage is Stage.IN else 0

    @property
    def largest_frame(self) -> int | None:
        """The limit of a frame in bytes while the client has not logged in, else None."""
        return None if self.stage is Stage.IN else TOKEN_BYTES_MAX


_ADMITTED = {
    Stage.BEGIN: (HANDSHAKE, API_VERSIONS),
    Stage.MECHANISM: (HANDSHAKE,),
    Stage.TOKENS: (AUTHENTICATE, HANDSHAKE, API_VERSIONS),  # the last two are refused in an answer
}


@lru_cache(CREDENTIALS_KEPT)
def _token_credential(key: Secret, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
    return credential_of(key.reveal(), token_id, mechanism)
