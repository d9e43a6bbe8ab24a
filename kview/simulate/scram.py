"""Users' credentials for SCRAM, as Kafka keeps them: never a password, only what a login is checked with.

Sources: RFC 5802, and Kafka's ScramFormatter and ScramMechanism.
"""

import hashlib
import hmac
from enum import IntEnum
from typing import NamedTuple

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
"""Kafka's limits of the iterations of a new credential."""

_HASHES = {1: "sha256", 2: "sha512"}


class ScramMechanism(IntEnum):
    """A SCRAM mechanism, with its number in the protocol."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """The mechanism's name in a SASL handshake."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def hash(self) -> str:
        """The name of the hash function."""
        return _HASHES[self]


class ScramCredential(NamedTuple):
    """What a broker knows of a user's password. It is enough to check a login, but not to log in."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, …)"


ScramUser = tuple[str, ScramMechanism]
"""A user's name and a mechanism, which together have one credential."""


def keyed_hash(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    """Return the HMAC of a message."""
    return hmac.digest(key, message, mechanism.hash)


def salted(mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return the salted password."""
    return hashlib.pbkdf2_hmac(mechanism.hash, password, salt, iterations)


def credential(
    mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the credential of a user whose salted password is given."""
    client_key = keyed_hash(mechanism, salted_password, b"Client Key")
    stored_key = hashlib.new(mechanism.hash, client_key).digest()
    return ScramCredential(
        salt, stored_key, keyed_hash(mechanism, salted_password, b"Server Key"), iterations
    )


def proven(mechanism: ScramMechanism, stored_key: bytes, proof: bytes, exchanged: bytes) -> bool:
    """Return whether a client's proof shows that it knows the password. `exchanged` are the messages."""
    signature = keyed_hash(mechanism, stored_key, exchanged)
    if len(proof) != len(signature):
        return False
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    return hmac.compare_digest(hashlib.new(mechanism.hash, client_key).digest(), stored_key)
