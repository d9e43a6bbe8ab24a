"""The settings of transaction coordinators."""

from collections.abc import Mapping
from dataclasses import dataclass

from kview.simulate.features import TRANSACTION_VERSION
from kview.simulate.settings import Settings


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """A coordinator's settings, named like Kafka's keys but with underscores and without `transaction.`.

    `version` is the highest transaction.version: below 2, no end of a transaction gives a new epoch.
    """

    state_log_num_partitions: int = 50
    max_timeout_ms: int = 900_000
    abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    id_expiration_ms: int = 604_800_000
    remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    version: int = 2

    @classmethod
    def of(cls, settings: Settings) -> "TransactionSettings":
        """Return the coordinator's settings, taken from the brokers' settings."""
        _, version = settings.release.features.get(TRANSACTION_VERSION, (0, 0))
        return cls(version=version, **{field: settings.number(key) for key, field in _FIELDS.items()})


_FIELDS: Mapping[str, str] = {
    "transaction.state.log.num.partitions": "state_log_num_partitions",
    "transaction.max.timeout.ms": "max_timeout_ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "abort_timed_out_transaction_cleanup_interval_ms"
    ),
    "transactional.id.expiration.ms": "id_expiration_ms",
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "remove_expired_transaction_cleanup_interval_ms"
    ),
}
"""Kafka's key → the name of the field above."""
