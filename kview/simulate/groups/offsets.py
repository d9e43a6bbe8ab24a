"""How offsets are committed, fetched and expired. Sources: Kafka's OffsetMetadataManager and
ConsumerGroup."""

from collections.abc import Callable, Sequence

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerGroup, ConsumerMember
from kview.simulate.groups.group import Group, GroupState
from kview.simulate.groups.membership import Membership
from kview.simulate.groups.records import NO_TOPIC_ID, Change, OffsetKey, OffsetValue
from kview.simulate.groups.results import (
    NO_OFFSET,
    CommitDone,
    CommitRequest,
    CommitResult,
    FetchedOffset,
)
from kview.simulate.groups.shard import AnyGroup, GroupShard
from kview.simulate.groups.share_group import ShareGroup
from kview.simulate.groups.streams_group import StreamsGroup, StreamsMember
from kview.simulate.groups.streams_records import Role, TaskKey

MS_PER_MINUTE = 60_000


def commit_refusal(group: AnyGroup | None, request: CommitRequest) -> ErrorCode:
    """Return why an entire commit request is refused, or NONE."""
    anonymous = request.generation < 0 and not request.member_id and request.group_instance_id is None
    if anonymous and request.producer is not None:
        return ErrorCode.NONE  # The transactional id fences, not the group.
    if group is None:
        if request.generation < 0:
            return ErrorCode.NONE
        knows = request.producer is None and request.knows_epochs
        return ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
    if isinstance(group, ShareGroup):
        return ErrorCode.GROUP_ID_NOT_FOUND
    if request.generation < 0 and not group.members:
        return ErrorCode.NONE
    if isinstance(group, ConsumerGroup | StreamsGroup):
        return _epoch_refusal(group, request)
    if anonymous:
        return ErrorCode.UNKNOWN_MEMBER_ID  # Clients outside a group cannot commit while it has members.
    refusal = group.refusal_of(request.member_id, request.group_instance_id)
    if refusal is not ErrorCode.NONE:
        return refusal
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE and request.producer is None:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _epoch_refusal(group: ConsumerGroup | StreamsGroup, request: CommitRequest) -> ErrorCode:
    """Return why an entire commit request of a member with an epoch is refused, or NONE."""
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.producer is None and not _is_classic(member) and not request.knows_epochs:
        return ErrorCode.UNSUPPORTED_VERSION
    if request.generation > member.current.epoch:
        return _stale(member, request)
    return ErrorCode.NONE


def _is_classic(member: ConsumerMember | StreamsMember) -> bool:
    """Return whether a member uses the classic protocol."""
    return isinstance(member, ConsumerMember) and member.metadata.classic is not None


def _stale(member: ConsumerMember | StreamsMember, request: CommitRequest) -> ErrorCode:
    """Return the error for a wrong epoch, which clients of the classic protocol do not know."""
    known = not _is_classic(member) and request.producer is None
    return ErrorCode.STALE_MEMBER_EPOCH if known else ErrorCode.ILLEGAL_GENERATION


def _owner_refusal(
    group: AnyGroup | None, request: CommitRequest, topic: str, key: tuple[bytes, int]
) -> ErrorCode:
    """Return why a commit for this partition (topic id, number) of a topic is refused, or NONE.

    A member with an older epoch may commit what it has had since then (KIP-1251).
    """
    if not isinstance(group, ConsumerGroup | StreamsGroup):
        return ErrorCode.NONE
    member = group.members.get(request.member_id)
    if member is None or request.generation >= member.current.epoch:
        return ErrorCode.NONE
    since = _since(member, group, topic, key)
    if since is not None and request.generation >= since:
        return ErrorCode.NONE
    return _stale(member, request)


def _since(
    member: ConsumerMember | StreamsMember,
    group: ConsumerGroup | StreamsGroup,
    topic: str,
    key: tuple[bytes, int],
) -> int | None:
    """Return the epoch since which a member has had a partition, or None if it does not have it."""
    topic_id, partition = key
    if isinstance(member, ConsumerMember):
        for owned in (member.current.assigned, member.current.revoking):
            if partition in owned.get(topic_id, {}):
                return owned[topic_id][partition]
        return None
    subtopology = group.readers().get(topic) if isinstance(group, StreamsGroup) else None
    if subtopology is None:
        return None
    task = TaskKey(Role.ACTIVE, subtopology.subtopology)
    for tasks in (member.current.assigned, member.current.revoking):
        if partition in tasks.get(task, {}):
            return tasks[task][partition]
    return None


def fetch_refusal(group: AnyGroup | None, member_id: str | None, member_epoch: int) -> ErrorCode:
    """Return why a member may not fetch its group's offsets, or NONE."""
    if not isinstance(group, ConsumerGroup | StreamsGroup) or (member_id is None and member_epoch < 0):
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member_epoch == member.current.epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if _is_classic(member) else ErrorCode.STALE_MEMBER_EPOCH


def commit(
    shard: GroupShard,
    membership: Membership,
    request: CommitRequest,
    refused: dict[int, ErrorCode],
    done: CommitDone,
) -> None:
    """Append a request's offsets to the log, and answer when the append is committed.

    Offsets in `refused` (index → error) are left out.
    """
    count = len(request.offsets)
    group = shard.groups.get(request.group)
    refusal = commit_refusal(group, request)
    if refusal is not ErrorCode.NONE:
        done(CommitResult((refusal,) * count))
        return
    if group is None:
        group = shard.groups[request.group] = Group(request.group, state_since_ms=shard.now_ms)
    if isinstance(group, Group) and request.producer is None:
        member = group.members.get(request.member_id)
        if member is not None:
            membership.sessions.restart(group, member)
    values = {}
    for i, o in enumerate(request.offsets):
        topic_id = shard.host.topic_id(o.topic, o.partition)
        if i in refused or topic_id is None:
            continue
        code = _owner_refusal(group, request, o.topic, (topic_id, o.partition))
        if code is ErrorCode.NONE:
            kept_id = topic_id if shard.settings.stores_topic_ids else NO_TOPIC_ID
            value = OffsetValue(o.offset, o.leader_epoch, o.metadata, shard.now_ms, kept_id)
            values[o.topic, o.partition] = value
        elif request.producer is None:
            # As in Kafka, nothing in the request is committed, but for transactions.
            for j in range(count):
                if refused.get(j, ErrorCode.OFFSET_METADATA_TOO_LARGE) is ErrorCode.OFFSET_METADATA_TOO_LARGE:
                    refused[j] = code
            values.clear()
            break
        else:
            refused[i] = code

    def apply() -> None:
        if request.producer is not None:
            pending = shard.pending.setdefault(request.producer[0], {})
            pending.update({(request.group, *key): value for key, value in values.items()})
            return
        # A topic may have been deleted while the append was pending. Then its offsets no longer count.
        living = {key: value for key, value in values.items() if shard.lives(key, value)}
        shard.groups.setdefault(request.group, group).offsets.update(living)

    def answer(code: ErrorCode) -> None:
        done(CommitResult(tuple(refused.get(i, code) for i in range(count))))

    if values:
        changes: list[Change] = [
            (OffsetKey(request.group, topic, partition), value)
            for (topic, partition), value in values.items()
        ]
        shard.write(changes, apply, answer, request.producer)
    else:
        answer(ErrorCode.NONE)


def fetch(
    shard: GroupShard, name: str, partitions: Sequence[tuple[str, int]] | None, require_stable: bool
) -> tuple[FetchedOffset, ...]:
    """Return the committed offsets of these partitions, or of all partitions in sorted order.

    With `require_stable`, those that an open transaction commits have an error.
    """
    group = shard.groups.get(name)
    offsets = group.offsets if group is not None else {}
    wanted = sorted(offsets) if partitions is None else partitions
    fetched: list[FetchedOffset] = []
    for topic, partition in wanted:
        value = offsets.get((topic, partition))
        if require_stable and shard.is_pending(name, (topic, partition)):
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
            fetched.append(FetchedOffset(topic, partition, NO_OFFSET, error_code=unstable))
        elif value is None:
            fetched.append(FetchedOffset(topic, partition, NO_OFFSET))
        else:
            fetched.append(FetchedOffset(topic, partition, value.offset, value.leader_epoch, value.metadata))
    return tuple(fetched)


def expire(shard: GroupShard) -> None:
    """Delete offsets whose group has had no members for offsets.retention.minutes, then the group itself.

    In a group that never had members, the time of each offset counts from its own commit (KIP-211). So it
    does in a consumer or streams group, for the topics that no member subscribes to.
    """
    before_ms = shard.now_ms - shard.settings.offsets_retention_minutes * MS_PER_MINUTE
    for group in list(shard.groups.values()):
        since_ms, read = 0, frozenset[str]()
        if isinstance(group, ShareGroup):
            continue  # It has no offsets, and stays until it is deleted.
        if isinstance(group, ConsumerGroup | StreamsGroup):
            read = group.subscribed_topics()
        elif not group.empty or group.pending_members:
            continue
        elif group.protocol_type:
            since_ms = group.state_since_ms
        if shard.has_pending(group.name):
            continue
        gone = [
            key
            for key, value in group.offsets.items()
            if max(value.commit_ms, since_ms) <= before_ms and key[0] not in read
        ]
        forget(shard, group, gone)


def forget_deleted_topics(shard: GroupShard) -> None:
    """Write tombstones for the offsets of topics that the broker's metadata no longer has."""
    changes: list[Change] = []
    for group in shard.groups.values():
        for key in [key for key, value in group.offsets.items() if not shard.lives(key, value)]:
            del group.offsets[key]
            changes.append((OffsetKey(group.name, *key), None))
    if changes:
        shard.write(changes, None, lambda code: None)


def delete(
    shard: GroupShard, group: AnyGroup, keys: Sequence[tuple[str, int]], answer: Callable[[ErrorCode], None]
) -> None:
    """Delete the offsets of these partitions by writing tombstones. The group stays, even without offsets."""
    gone = [key for key in dict.fromkeys(keys) if key in group.offsets]
    for key in gone:
        del group.offsets[key]
    if gone:
        shard.write([(OffsetKey(group.name, *key), None) for key in gone], None, answer)
    else:
        answer(ErrorCode.NONE)


def forget(
    shard: GroupShard,
    group: AnyGroup,
    gone: Sequence[tuple[str, int]],
    answer: Callable[[ErrorCode], None] = lambda code: None,
) -> None:
    """Delete these offsets, and the group if it has no members and no other offsets, by writing tombstones.

    `answer` is called when the tombstones are committed.
    """
    changes: list[Change] = [(OffsetKey(group.name, topic, partition), None) for topic, partition in gone]
    for key in gone:
        del group.offsets[key]
    if not group.offsets and group.empty:
        changes += group.tombstones()
        if isinstance(group, Group):
            group.enter(GroupState.DEAD, shard.now_ms)
        del shard.groups[group.name]
    if changes:
        shard.write(changes, None, answer)
    else:
        answer(ErrorCode.NONE)
