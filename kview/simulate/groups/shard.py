"""One offsets partition at its leader, with the groups that are loaded from its log and written to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kview.simulate.codes import ErrorCode
from kview.simulate.config_entries import ALL_BROKERS
from kview.simulate.coordination.host import Host
from kview.simulate.coordination.shard import Answer, Shard
from kview.simulate.groups.consumer_group import ConsumerGroup
from kview.simulate.groups.consumer_records import ConsumerKey, EpochKey
from kview.simulate.groups.group import Group
from kview.simulate.groups.records import (
    NO_TOPIC_ID,
    Change,
    GroupKey,
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_batch,
    encode_batch,
)
from kview.simulate.groups.settings import GroupSettings
from kview.simulate.groups.share_group import ShareGroup
from kview.simulate.groups.share_records import ShareEpochKey, ShareKey
from kview.simulate.groups.streams_group import StreamsGroup
from kview.simulate.groups.streams_records import StreamsEpochKey, StreamsKey
from kview.simulate.records import CONTROL, TRANSACTIONAL, decode_marker, header
from kview.wire.primitives import MalformedBytes

NewGroup = ConsumerGroup | ShareGroup | StreamsGroup
"""A group whose members send heartbeats of their own API."""

AnyGroup = Group | NewGroup
"""A group of any kind."""

G = TypeVar("G", ConsumerGroup, ShareGroup, StreamsGroup)

EPOCH_MAX = 2**31 - 1
"""Limit of an epoch, which is an int32."""

RETRY_MS = 500
"""Time until a member is removed at the next attempt, if the log has not taken the first."""

BATCH_BYTES_MAX = 1_048_588
"""Limit of a batch in `__consumer_offsets`: message.max.bytes of the brokers, by default."""

Pending = dict[tuple[str, str, int], OffsetValue]
"""(group, topic, partition) → what a transaction commits."""


class GroupShard(Shard):
    """The groups of one offsets partition while this broker leads it in one leader epoch."""

    def __init__(self, broker: int, host: Host, settings: GroupSettings, partition: int) -> None:
        super().__init__(host, partition, settings.offsets_commit_timeout_ms)
        self.broker = broker
        self.settings = settings
        self.groups: dict[str, AnyGroup] = {}
        self.pending: dict[int, Pending] = {}
        """Producer id → the offsets that its open transaction commits."""
        self._topics: Mapping[str, object] | None = None
        self._topics_number = 0

    def load(self) -> None:
        """Load the groups and their offsets from the partition's log."""
        groups: dict[str, AnyGroup] = {}
        consumer_groups: dict[str, ConsumerGroup] = {}
        share_groups: dict[str, ShareGroup] = {}
        streams_groups: dict[str, StreamsGroup] = {}
        offsets: dict[str, dict[tuple[str, int], OffsetValue]] = {}
        values: dict[str, GroupValue] = {}
        pending: dict[int, list[Change]] = {}
        for batch in self.host.batches(self.partition):
            self.batches += 1
            head = header(batch)
            try:
                if head.attributes & CONTROL:
                    marker, ended = decode_marker(batch), pending.pop(head.producer_id, [])
                    changes = ended if marker is not None and marker.is_commit else []
                else:
                    changes = decode_batch(batch)
            except MalformedBytes:
                continue  # A client wrote records of its own. A coordinator skips what it cannot read.
            if head.attributes & TRANSACTIONAL and not head.attributes & CONTROL:
                pending.setdefault(head.producer_id, []).extend(changes)
                continue
            for key, value in changes:
                if isinstance(key, GroupKey):
                    values.pop(key.group, None)
                    if isinstance(value, GroupValue):
                        values[key.group] = value
                        consumer_groups.pop(key.group, None)
                        streams_groups.pop(key.group, None)
                elif isinstance(key, ShareKey):
                    _replay(share_groups, ShareGroup, key, value)
                elif isinstance(key, StreamsKey):
                    if value is not None:
                        values.pop(key.group, None)
                    _replay(streams_groups, StreamsGroup, key, value)
                elif not isinstance(key, OffsetKey):
                    if value is not None:
                        values.pop(key.group, None)
                    _replay(consumer_groups, ConsumerGroup, key, value)
                else:
                    of_group = offsets.setdefault(key.group, {})
                    of_group.pop((key.topic, key.partition), None)
                    # A topic may have been deleted while no broker led this partition.
                    if isinstance(value, OffsetValue) and self.lives((key.topic, key.partition), value):
                        of_group[key.topic, key.partition] = value
        committed = (name for name, of_group in offsets.items() if of_group)
        new_groups: dict[str, ConsumerGroup | StreamsGroup] = {**consumer_groups, **streams_groups}
        for name in sorted({*values, *new_groups, *committed}):
            if name in new_groups:
                new_groups[name].offsets = offsets.get(name, {})
                groups[name] = new_groups[name]
                continue
            group = Group(name, offsets=offsets.get(name, {}), state_since_ms=self.now_ms)
            if name in values:
                group.load(values[name])
            groups[name] = group
        self.groups = {**groups, **share_groups}
        self.pending = {
            producer_id: {
                (key.group, key.topic, key.partition): value
                for key, value in changes
                if isinstance(key, OffsetKey) and isinstance(value, OffsetValue)
            }
            for producer_id, changes in pending.items()
        }
        self.loading = False

    @property
    def topics_number(self) -> int:
        """A number that is another one after each change of the topics."""
        topics = self.host.metadata().topics
        if topics is not self._topics:
            self._topics, self._topics_number = topics, self._topics_number + 1
        return self._topics_number

    def assigned_lately(self, group: NewGroup, interval: str) -> bool:
        """Return whether the last target assignment of a group is not yet as old as this setting says."""
        interval_ms, last_ms = self.group_setting(group.name, interval), group.target_calculated_ms
        return bool(last_ms and interval_ms) and self.now_ms < last_ms + interval_ms

    def group_setting(self, group: str, name: str) -> int:
        """Return a setting of a group, such as `share.session.timeout.ms`: its own, else the brokers'."""
        image, key = self.host.metadata(), f"group.{name}"
        own = image.group_configs.get(group, {}).get(name)
        if own is not None:
            return int(own)
        for place in (str(self.broker), ALL_BROKERS):
            dynamic = image.broker_configs.get(place, {}).get(key)
            if dynamic is not None and key not in self.settings.lacking:
                return int(dynamic)
        return self.settings.of_groups(name)

    def classic_groups(self) -> Iterator[Group]:
        """Yield the groups of the classic protocol."""
        return (group for group in self.groups.values() if isinstance(group, Group))

    def consumer_groups(self) -> Iterator[ConsumerGroup]:
        """Yield the groups of the consumer protocol."""
        return (group for group in self.groups.values() if isinstance(group, ConsumerGroup))

    def share_groups(self) -> Iterator[ShareGroup]:
        """Yield the share groups."""
        return (group for group in self.groups.values() if isinstance(group, ShareGroup))

    def streams_groups(self) -> Iterator[StreamsGroup]:
        """Yield the streams groups."""
        return (group for group in self.groups.values() if isinstance(group, StreamsGroup))

    def is_pending(self, group: str, key: tuple[str, int]) -> bool:
        """Return whether an open transaction commits an offset of the group for this partition."""
        return any((group, *key) in offsets for offsets in self.pending.values())

    def has_pending(self, group: str) -> bool:
        """Return whether an open transaction commits offsets of the group."""
        return any(key[0] == group for offsets in self.pending.values() for key in offsets)

    def transaction_ended(self, producer_id: int, is_commit: bool) -> None:
        """Put the offsets that a producer's transaction committed into force, or forget them."""
        offsets = self.pending.pop(producer_id, {})
        for (name, topic, partition), value in offsets.items() if is_commit else ():
            group = self.groups.get(name)
            if group is None:
                group = self.groups[name] = Group(name, state_since_ms=self.now_ms)
            if self.lives((topic, partition), value):
                group.offsets[topic, partition] = value

    def lives(self, key: tuple[str, int], value: OffsetValue) -> bool:
        """Return whether the topic of this committed offset still exists, as far as the broker knows."""
        topic_id = self.host.topic_id(*key)
        return topic_id is not None and value.topic_id in (topic_id, NO_TOPIC_ID)

    def write(
        self,
        changes: Sequence[Change],
        apply: Callable[[], None] | None,
        answer: Answer,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Append changes to the log, and call `apply` when they are committed, as `append` does.

        They are part of the transaction of `producer` (id, epoch), if that is given.
        """
        self.append(encode_batch(changes, self.now_ms, producer), apply and (lambda offset: apply()), answer)

    def change(self, changes: Sequence[Change], apply: Callable[[], None], answer: Answer) -> bool:
        """Append changes to the log, and return whether they are in it. Then `apply` puts them in force.

        `answer` is called when they are committed, or at once if the log does not take them.
        """
        batch = encode_batch(changes, self.now_ms)
        if len(batch) > BATCH_BYTES_MAX:
            answer(ErrorCode.UNKNOWN_SERVER_ERROR)
            return False
        refused = applied = False

        def apply_once(offset: int = -1) -> None:
            nonlocal applied
            if not applied:
                applied = True
                apply()

        def answered(code: ErrorCode) -> None:
            nonlocal refused
            refused = code is not ErrorCode.NONE
            answer(code)

        self.append(batch, apply_once, answered)
        if not refused:
            apply_once()
        return not refused

    def change_group(self, group: NewGroup, changes: Sequence[Change], answer: Answer) -> bool:
        """Append changes of a group to the log, as `change` does, and replay those that are about its kind.

        `group` takes the place of the group of its name. Without changes, `answer` is called at once.
        """

        def apply() -> None:
            self.groups[group.name] = group
            replay: Callable[[Any, Any], None] = group.replay
            for key, value in changes:
                if isinstance(key, _KEYS[type(group)]):
                    replay(key, value)

        if not changes:
            answer(ErrorCode.NONE)
            return True
        return self.change(changes, apply, answer)


def next_epoch(group: NewGroup) -> int:
    """Return the epoch after a group's present one."""
    return min(group.epoch + 1, EPOCH_MAX)


_KEYS: Mapping[type[NewGroup], Any] = {
    ConsumerGroup: ConsumerKey,
    ShareGroup: ShareKey,
    StreamsGroup: StreamsKey,
}
"""Kind of group → the keys of its records."""


def _replay(groups: dict[str, G], kind: Callable[[str], G], key: Any, value: Any) -> None:
    """Apply a change from the log to the group of this kind that it is about."""
    if isinstance(key, EpochKey | ShareEpochKey | StreamsEpochKey) and value is None:
        groups.pop(key.group, None)
        return
    group = groups.get(key.group)
    if group is None:
        if value is None:
            return
        group = groups[key.group] = kind(key.group)
    group.replay(key, value)
