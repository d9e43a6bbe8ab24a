"""The settings of group coordinators."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kview.simulate.releases import ASSIGNORS
from kview.simulate.setting import items
from kview.simulate.settings import Settings


class MigrationPolicy(StrEnum):
    """Which groups change their protocol while they have members (group.consumer.migration.policy)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether classic groups become consumer groups."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether consumer groups become classic groups."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A coordinator's settings, named like Kafka's keys but with underscores. Those of consumer, share
    and streams groups lack the `group.`."""

    offsets_topic_num_partitions: int = 50
    group_initial_rebalance_delay_ms: int = 3_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2_147_483_647
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 2_147_483_647
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The assignors that members may ask for. The first one is the default."""
    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    consumer_assignment_interval_ms: int = 1_000
    consumer_regex_refresh_interval_ms: int = 600_000
    share_session_timeout_ms: int = 45_000
    share_heartbeat_interval_ms: int = 5_000
    share_assignment_interval_ms: int = 1_000
    share_max_size: int = 200
    streams_session_timeout_ms: int = 45_000
    streams_heartbeat_interval_ms: int = 5_000
    streams_assignment_interval_ms: int = 1_000
    streams_initial_rebalance_delay_ms: int = 3_000
    streams_num_standby_replicas: int = 0
    streams_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    lacking: Collection[str] = ()
    """Settings that brokers of this release do not know, so whose dynamic values may be anything."""
    stores_topic_ids: bool = True
    consumer_first_epoch: int = 1

    def of_groups(self, name: str) -> int:
        """Return the setting `group.NAME` that groups may have for themselves. Times are in ms."""
        return {
            "consumer.assignment.interval.ms": self.consumer_assignment_interval_ms,
            "consumer.heartbeat.interval.ms": self.consumer_heartbeat_interval_ms,
            "consumer.session.timeout.ms": self.consumer_session_timeout_ms,
            "share.assignment.interval.ms": self.share_assignment_interval_ms,
            "share.heartbeat.interval.ms": self.share_heartbeat_interval_ms,
            "share.session.timeout.ms": self.share_session_timeout_ms,
            "streams.assignment.interval.ms": self.streams_assignment_interval_ms,
            "streams.heartbeat.interval.ms": self.streams_heartbeat_interval_ms,
            "streams.initial.rebalance.delay.ms": self.streams_initial_rebalance_delay_ms,
            "streams.num.standby.replicas": self.streams_num_standby_replicas,
            "streams.session.timeout.ms": self.streams_session_timeout_ms,
        }[name]

    @classmethod
    def of(cls, settings: Settings) -> "GroupSettings":
        """Return the coordinator's settings, taken from the brokers' settings."""
        return cls(
            consumer_assignors=tuple(map(_assignor, items(settings.text(ASSIGNORS)))) or ("uniform",),
            consumer_migration_policy=MigrationPolicy(settings.text("group.consumer.migration.policy")),
            lacking=settings.release.lacking.keys(),
            stores_topic_ids=settings.release.stores_topic_ids,
            consumer_first_epoch=settings.release.first_group_epoch,
            **{field: settings.number(key) for key, field in _FIELDS.items()},
        )


def _assignor(name: str) -> str:
    """Return an assignor's name, which brokers before Kafka 4.0 know by its class."""
    return name.rpartition(".")[2].removesuffix("Assignor").lower()


_FIELDS: Mapping[str, str] = {
    "offsets.topic.num.partitions": "offsets_topic_num_partitions",
    "group.initial.rebalance.delay.ms": "group_initial_rebalance_delay_ms",
    "group.min.session.timeout.ms": "group_min_session_timeout_ms",
    "group.max.session.timeout.ms": "group_max_session_timeout_ms",
    "group.max.size": "group_max_size",
    "group.consumer.session.timeout.ms": "consumer_session_timeout_ms",
    "group.consumer.heartbeat.interval.ms": "consumer_heartbeat_interval_ms",
    "group.consumer.max.size": "consumer_max_size",
    "group.consumer.assignment.interval.ms": "consumer_assignment_interval_ms",
    "group.consumer.regex.refresh.interval.ms": "consumer_regex_refresh_interval_ms",
    "group.share.session.timeout.ms": "share_session_timeout_ms",
    "group.share.heartbeat.interval.ms": "share_heartbeat_interval_ms",
    "group.share.assignment.interval.ms": "share_assignment_interval_ms",
    "group.share.max.size": "share_max_size",
    "group.streams.session.timeout.ms": "streams_session_timeout_ms",
    "group.streams.heartbeat.interval.ms": "streams_heartbeat_interval_ms",
    "group.streams.assignment.interval.ms": "streams_assignment_interval_ms",
    "group.streams.initial.rebalance.delay.ms": "streams_initial_rebalance_delay_ms",
    "group.streams.num.standby.replicas": "streams_num_standby_replicas",
    "group.streams.max.size": "streams_max_size",
    "offset.metadata.max.bytes": "offset_metadata_max_bytes",
    "offsets.commit.timeout.ms": "offsets_commit_timeout_ms",
    "offsets.retention.minutes": "offsets_retention_minutes",
    "offsets.retention.check.interval.ms": "offsets_retention_check_interval_ms",
}
"""Kafka's key → the name of the field above."""
