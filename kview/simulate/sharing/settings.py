"""The settings of share coordinators, and of share groups at the leaders of partitions."""

from dataclasses import dataclass

from kview.simulate.config_entries import ALL_BROKERS
from kview.simulate.metadata import MetadataImage
from kview.simulate.setting import duration_ms
from kview.simulate.settings import (
    AUTO_OFFSET_RESET,
    GROUP_ONLY_KEYS,
    ISOLATION_LEVEL,
    RENEW_ENABLED,
    Settings,
)

EARLIEST, LATEST = "earliest", "latest"
_OF_GROUPS = (
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
)


@dataclass(frozen=True, slots=True)
class OfGroup:
    """What counts for one share group."""

    delivery_count_limit: int
    max_record_locks: int
    lock_ms: int
    read_committed: bool
    renews: bool
    reset: str


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """The brokers' settings, named like Kafka's keys but with underscores."""

    state_topic_num_partitions: int
    write_timeout_ms: int
    update_records_per_snapshot: int
    max_sessions: int
    of_groups: tuple[int, ...]

    @classmethod
    def of(cls, settings: Settings) -> "ShareSettings":
        """Return them, taken from the brokers' settings."""
        return cls(
            settings.number("share.coordinator.state.topic.num.partitions"),
            settings.number("share.coordinator.write.timeout.ms"),
            settings.number("share.coordinator.snapshot.update.records.per.snapshot"),
            settings.number("group.share.max.share.sessions"),
            tuple(settings.number(f"group.{name}") for name in _OF_GROUPS),
        )

    def of_group(self, image: MetadataImage, broker: int, group: str) -> OfGroup:
        """Return a group's own settings, or else the brokers'."""
        own = image.group_configs.get(group, {})
        numbers = []
        for name, default in zip(_OF_GROUPS, self.of_groups, strict=True):
            value = own.get(name)
            for place in (str(broker), ALL_BROKERS):
                if value is None:
                    value = image.broker_configs.get(place, {}).get(f"group.{name}")
            numbers.append(default if value is None else int(value))
        words = {name: own.get(name, key.default) for name, key in GROUP_ONLY_KEYS.items()}
        return OfGroup(
            numbers[0],
            numbers[1],
            numbers[2],
            words[ISOLATION_LEVEL] == "read_committed",
            words[RENEW_ENABLED] == "true",
            words[AUTO_OFFSET_RESET],
        )


def reset_time_ms(reset: str, now_ms: int) -> int:
    """Return the time of the first record to read, as ListOffsets has it: −2 for the earliest, −1 for the
    latest."""
    ago_ms = duration_ms(reset)
    if ago_ms is not None:
        return max(0, now_ms - ago_ms)
    return -2 if reset == EARLIEST else -1
