"""The quota of changes by the controller (KIP-599): partitions that a client creates or deletes.

Source: org.apache.kafka.server.quota.ControllerMutationQuotaManager.
"""

from kview.serve.call import CONTROLLER, Call
from kview.simulate.client_quotas import MUTATIONS
from kview.simulate.codes import ErrorCode

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class Mutations:
    """The changes that one request asks for.

    From version `strict_from` on, nothing is changed for a client that is above its quota. Before, everything
    is, but the client has to wait afterwards.
    """

    def __init__(self, call: Call, strict_from: int) -> None:
        self._call = call
        self._strict = call.version >= strict_from
        self._limit = call.limit(MUTATIONS)
        self._refused = False

    def allows(self, partitions: int) -> bool:
        """Return whether the controller may change so many partitions for the client, and note it."""
        if self._limit is None:
            return True
        if self._strict and self._throttle_ms():
            self._refused = True
            return False
        bucket = self._call.wire.throttles_of(CONTROLLER).bucket(MUTATIONS, self._limit)
        bucket.record(partitions, self._limit.value, self._call.now_ms)
        return True

    def throttle(self) -> int:
        """Mute the connection if the client has to wait. Return how long, in milliseconds."""
        if self._limit is None or (self._strict and not self._refused):
            return 0
        throttle_ms = self._throttle_ms()
        self._call.mute(throttle_ms)
        return throttle_ms

    def _throttle_ms(self) -> int:
        assert self._limit is not None
        bucket = self._call.wire.throttles_of(CONTROLLER).bucket(MUTATIONS, self._limit)
        return bucket.throttle_ms(self._limit.value, self._call.now_ms)
