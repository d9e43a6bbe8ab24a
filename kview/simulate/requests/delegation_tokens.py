"""The controller's side of delegation tokens.

Source: org.apache.kafka.controller.DelegationTokenControlManager.
"""

import base64
import hmac
from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.kernel import Kernel
from kview.simulate.setting import LONG_MAX
from kview.simulate.settings import Settings
from kview.simulate.tokens import SECRET_KEY, DelegationToken, Principal, hmac_of

ID_BYTES = 16
TOKENS_MAX = 2_000
NAME_MAX, RENEWERS_MAX = 250, 10
"""Limits of all tokens, of the characters in a name, and of the renewers of a token, which make about 25 MB.
Kafka has none."""


class Created(NamedTuple):
    """What came of creating a token: an error, or the token."""

    error: ErrorCode
    token: DelegationToken | None = None


class Changed(NamedTuple):
    """What came of renewing or expiring a token: an error, or when it expires, in milliseconds."""

    error: ErrorCode
    expires_ms: int = 0


class DelegationTokens:
    """Creates tokens, and changes when they expire. They are part of the metadata."""

    def __init__(self, kernel: Kernel, settings: Settings, quorum: Quorum, metadata: MetadataLog) -> None:
        self._secret_key = settings.text(SECRET_KEY)
        self._kernel = kernel
        self._quorum = quorum
        self._metadata = metadata
        self._max_life_ms = settings.number("delegation.token.max.lifetime.ms")
        self._renewed_ms = settings.number("delegation.token.expiry.time.ms")
        self._sweep_us = settings.us("delegation.token.expiry.check.interval.ms")
        if self.enabled:
            kernel.tick(self._sweep_us, self._sweep)

    @property
    def enabled(self) -> bool:
        """Whether the brokers have the key that tokens are made with."""
        return self._secret_key != ""

    def hmac_of(self, token: DelegationToken) -> bytes:
        """Return the secret of a token."""
        return hmac_of(self._secret_key, token.id)

    def create(
        self, requester: Principal, owner: Principal, renewers: Sequence[Principal], life_ms: int
    ) -> Created:
        """Create a token. A life that is not positive is the longest. Renewers are users."""
        if not self.enabled:
            return Created(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        tokens = self._metadata.image.tokens
        names = (text for principal in (owner, *renewers) for text in principal)
        if (
            len(tokens) >= TOKENS_MAX
            or len(renewers) > RENEWERS_MAX
            or any(len(name) > NAME_MAX for name in names)
        ):
            return Created(ErrorCode.POLICY_VIOLATION)
        now_ms = self._now_ms
        last_ms = _later(now_ms, min(life_ms, self._max_life_ms) if life_ms > 0 else self._max_life_ms)
        token = DelegationToken(
            base64.urlsafe_b64encode(self._kernel.random("tokens").randbytes(ID_BYTES)).decode().rstrip("="),
            owner,
            requester,
            tuple(renewers),
            now_ms,
            min(last_ms, _later(now_ms, self._renewed_ms)),
            last_ms,
        )
        self._metadata.commit({}, tokens={**tokens, token.id: token})
        return Created(ErrorCode.NONE, token)

    def renew(self, principal: Principal, secret: bytes, period_ms: int) -> Changed:
        """Let a token expire later. A period that is not positive is the longest."""

        def renewed(token: DelegationToken, now_ms: int) -> Changed:
            if token.has_expired(now_ms):
                return Changed(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            if not _may_change(token, principal):
                return Changed(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
            longer_ms = min(period_ms, self._renewed_ms) if period_ms > 0 else self._renewed_ms
            return self._set(token, _later(now_ms, longer_ms))

        return self._changed(secret, renewed)

    def expire(self, principal: Principal, secret: bytes, period_ms: int) -> Changed:
        """Let a token expire after a period, or remove it if the period is negative."""

        def expired(token: DelegationToken, now_ms: int) -> Changed:
            if not _may_change(token, principal):
                return Changed(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
            if period_ms < 0:
                self._remove({token.id})
                return Changed(ErrorCode.NONE, now_ms)
            if token.has_expired(now_ms):
                return Changed(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            return self._set(token, _later(now_ms, period_ms))

        return self._changed(secret, expired)

    def _changed(self, secret: bytes, change: Callable[[DelegationToken, int], Changed]) -> Changed:
        if not self.enabled:
            return Changed(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        for token in self._metadata.image.tokens.values():
            if hmac.compare_digest(self.hmac_of(token), secret):
                return change(token, self._now_ms)
        return Changed(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)

    def _set(self, token: DelegationToken, expires_ms: int) -> Changed:
        changed = token._replace(expires_ms=min(token.last_ms, expires_ms))
        self._metadata.commit({}, tokens={**self._metadata.image.tokens, token.id: changed})
        return Changed(ErrorCode.NONE, changed.expires_ms)

    def _remove(self, ids: Set[str]) -> None:
        left = {name: token for name, token in self._metadata.image.tokens.items() if name not in ids}
        self._metadata.commit({}, tokens=left)

    def _sweep(self) -> None:
        """Remove the tokens that have expired."""
        self._kernel.tick(self._sweep_us, self._sweep)
        if self._quorum.active():
            now_ms = self._now_ms
            gone = {t.id for t in self._metadata.image.tokens.values() if t.has_expired(now_ms)}
            if gone:
                self._remove(gone)

    @property
    def _now_ms(self) -> int:
        return self._kernel.now_us // 1000


def _may_change(token: DelegationToken, principal: Principal) -> bool:
    return principal in (token.owner, *token.renewers)


def _later(now_ms: int, period_ms: int) -> int:
    return min(LONG_MAX, now_ms + period_ms)
