"""The ways to secure a simulated cluster: the values of `--security`, and the files for clients."""

from typing import Self

from msgspec import Struct

from kview.config.security import Mechanism, Protocol

MUTUAL_TLS = "mtls"
ADMIN, ALICE = "admin", "alice"
"""A user who may do everything, and one who may do nothing until an ACL allows it."""

_LOGINS = ("sasl_ssl", "sasl_plaintext")
_MECHANISMS = (Mechanism.SCRAM_SHA_512, Mechanism.SCRAM_SHA_256, Mechanism.PLAIN)
WAYS = (
    "ssl",
    MUTUAL_TLS,
    *_LOGINS,
    *(f"{protocol}:{mechanism.value.lower()}" for protocol in _LOGINS for mechanism in _MECHANISMS),
)
"""The values of `--security`. Without a mechanism, a login is with the first one."""


def client_file(user: str) -> str:
    """Return the name of the file with which a client of Java is a user, "" for any."""
    return "client.properties" if user in ("", ADMIN) else f"{user}.properties"


def librdkafka_file(user: str) -> str:
    """Return the name of the file with which a client of librdkafka is a user, "" for any."""
    return "librdkafka.conf" if user in ("", ADMIN) else f"{user}.conf"


class Way(Struct, frozen=True):
    """A protocol, a mechanism if it has logins, and whether clients need certificates."""

    protocol: Protocol
    mechanism: Mechanism | None = None
    mutual: bool = False

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the way that one of WAYS says."""
        protocol, _, mechanism = text.partition(":")
        if protocol == MUTUAL_TLS:
            return cls(Protocol.SSL, mutual=True)
        if protocol not in _LOGINS:
            return cls(Protocol(protocol.upper()))
        return cls(Protocol(protocol.upper()), Mechanism(mechanism.upper()) if mechanism else _MECHANISMS[0])

    @property
    def users(self) -> tuple[str, ...]:
        """Who clients can be, "" if nobody asks them."""
        return (ADMIN, ALICE) if self.knows_users else ("",)

    @property
    def knows_users(self) -> bool:
        """Whether brokers know who a client is."""
        return self.mutual or self.mechanism is not None

    def principal(self, user: str) -> str:
        """Return who a client with a user's login or certificate is."""
        return f"User:CN={user}" if self.mutual else f"User:{user}"
