"""Delegation tokens: secrets with which a client logs in as the user who asked for them (KIP-48).

Sources: Kafka's TokenInformation, DelegationTokenControlManager and DelegationTokenManager.
"""

import base64
import hmac
from typing import NamedTuple, Self

from kview.simulate.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism, credential, salted

SECRET_KEY = "delegation.token.secret.key"
USER = "User"
SALT_BYTES = 24


class Principal(NamedTuple):
    """Who a client is: a type, which is `User` for all that log in, and a name."""

    kind: str
    name: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the principal that is written as `User:alice`."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class DelegationToken(NamedTuple):
    """What the metadata has of a token. Times are in milliseconds since the epoch.

    `owner` is who a client with the token is, `requester` who asked for it, and `renewers` are who else may
    renew it, until `last_ms` at most.
    """

    id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    last_ms: int

    @property
    def principals(self) -> tuple[Principal, ...]:
        """All whom the token names."""
        return (self.owner, self.requester, *self.renewers)

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the token is not valid any more."""
        return min(self.last_ms, self.expires_ms) < now_ms


def hmac_of(secret_key: str, token_id: str) -> bytes:
    """Return the secret of a token, which only who has the brokers' key can calculate."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def credential_of(secret_key: str, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
    """Return what a login with a token is checked with, in 2 ms: its password is the secret in Base64.

    Its salt is random in Kafka. Here it only looks so to who has not the key.
    """
    password, salt = (
        base64.b64encode(hmac_of(secret_key, token_id)),
        hmac_of(secret_key, f"salt of {token_id}"),
    )
    salt = salt[:SALT_BYTES]
    return credential(mechanism, salted(mechanism, password, salt, ITERATIONS_MIN), salt, ITERATIONS_MIN)
