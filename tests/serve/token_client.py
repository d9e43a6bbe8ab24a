"""What a client of delegation tokens asks a broker."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kview.wire.admin_messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

DAY_MS = 86_400_000


def creation(
    version: int = 3,
    owner: tuple[str | None, str | None] = (None, None),
    renewers: Sequence[tuple[str, str]] = (),
    life_ms: int = -1,
) -> Any:
    """Ask for a token, by default for the client itself, with the longest life."""
    kind = CreateDelegationTokenRequest.CreatableRenewers
    fields: dict[str, Any] = {}
    if version >= 3:
        fields = {"owner_principal_type": owner[0], "owner_principal_name": owner[1]}
    return CreateDelegationTokenRequest(
        version=version,
        renewers=[kind(version=version, principal_type=t, principal_name=name) for t, name in renewers],
        max_lifetime_ms=life_ms,
        **fields,
    )


def renewal(hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """Let a token expire later."""
    return RenewDelegationTokenRequest(version=version, hmac=hmac, renew_period_ms=period_ms)


def expiry(hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """Let a token expire sooner, or at once."""
    return ExpireDelegationTokenRequest(version=version, hmac=hmac, expiry_time_period_ms=period_ms)


def description(owners: Sequence[tuple[str, str]] | None = None, version: int = 3) -> Any:
    """Ask for the tokens of owners, or for all."""
    kind = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    rows = None
    if owners is not None:
        rows = [kind(version=version, principal_type=t, principal_name=name) for t, name in owners]
    return DescribeDelegationTokenRequest(version=version, owners=rows)


@dataclass(frozen=True)
class Token:
    """What a client knows of its token."""

    id: str
    hmac: bytes

    @property
    def password(self) -> str:
        """What the client logs in with. Its name is the id."""
        return base64.b64encode(self.hmac).decode()


def token_in(answer: Any) -> Token:
    """Return the token that a client got."""
    assert answer.error_code == 0, answer
    return Token(answer.token_id, bytes(answer.hmac))
