"""How a group changes from the classic to the consumer protocol and back, while it has members.

Sources: ConsumerGroup.fromClassicGroup and ClassicGroup.fromConsumerGroup.
"""

from collections.abc import Collection, Mapping

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerGroup, ConsumerMember
from kview.simulate.groups.consumer_protocol import (
    CONSUMER,
    Subscription,
    assignment_user_data,
    by_topic,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from kview.simulate.groups.consumer_records import (
    ClassicMember,
    CurrentKey,
    CurrentValue,
    MemberKey,
    MemberMetadata,
    MemberState,
    Partitions,
    TargetKey,
    TargetValue,
)
from kview.simulate.groups.consumer_results import Refused
from kview.simulate.groups.group import Group, GroupState, Member
from kview.simulate.groups.settings import GroupSettings
from kview.simulate.groups.shard import GroupShard
from kview.simulate.groups.subscriptions import Topics
from kview.wire.primitives import MalformedBytes

# --- from classic to consumer


def check_upgrade(group: Group, settings: GroupSettings) -> None:
    """Check that a classic group may become a consumer group. Raises Refused."""
    if not settings.consumer_migration_policy.upgrades:
        raise _not_upgraded(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise _not_upgraded(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.consumer_max_size:
        raise _not_upgraded(group, "the group size exceeds the consumer group maximum size")


def upgrade(group: Group, topics: Topics) -> ConsumerGroup:
    """Return a consumer group with the members of a classic group, who keep what they have.

    Raises Refused.
    """
    epoch = group.generation
    upgraded = ConsumerGroup(group.name, group.offsets, epoch=epoch, target_epoch=epoch)
    try:
        for member in group.members.values():
            if assignment_user_data(member.assignment):
                raise _not_upgraded(
                    group,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch "
                    "to a default assignor before re-attempting the upgrade",
                )
            protocol = group.protocol or member.protocols[0].name
            subscription = decode_subscription(member.metadata(protocol))
            owned = ids_of(decode_assignment(member.assignment), topics)
            _add(upgraded, member, subscription, owned)
    except MalformedBytes as error:
        raise _not_upgraded(group, "the embedded consumer protocol is malformed") from error
    return upgraded


def _add(group: ConsumerGroup, member: Member, subscription: Subscription, owned: Partitions) -> None:
    metadata = MemberMetadata(
        member.group_instance_id,
        subscription.rack,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMember(member.session_timeout_ms, member.protocols),
    )
    assigned = {topic: dict.fromkeys(sorted(numbers), group.epoch) for topic, numbers in owned.items()}
    current = CurrentValue(group.epoch, group.epoch, MemberState.STABLE, assigned)
    group.replay(MemberKey(group.name, member.member_id), metadata)
    group.replay(TargetKey(group.name, member.member_id), TargetValue(owned))
    group.replay(CurrentKey(group.name, member.member_id), current)


def ids_of(pairs: Collection[tuple[str, int]], topics: Topics) -> dict[bytes, frozenset[int]]:
    """Return (topic, partition) pairs as topic id → partitions. Topics that do not exist are left out."""
    return {
        topics[topic].topic_id: frozenset(numbers)
        for topic, numbers in by_topic(pairs).items()
        if topic in topics
    }


def _not_upgraded(group: Group, reason: str) -> Refused:
    message = f"Cannot upgrade classic group {group.name} to consumer group because {reason}."
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)


# --- from consumer to classic


def may_downgrade(
    group: ConsumerGroup, leaving: Collection[ConsumerMember], settings: GroupSettings, joining: int = 0
) -> bool:
    """Return whether a group becomes a classic one when these members leave and `joining` others join.

    It does if all that are left use the classic protocol.
    """
    gone = {member.member_id for member in leaving}
    left = len(group.members) - len(gone) + joining
    if not left or left > settings.group_max_size or not settings.consumer_migration_policy.downgrades:
        return False
    if all(member.metadata.classic is not None for member in leaving):
        return False
    stay = [member.metadata.classic for name, member in group.members.items() if name not in gone]
    offered = [{protocol.name for protocol in classic.protocols} for classic in stay if classic is not None]
    return len(offered) == len(stay) and (not offered or bool(set.intersection(*offered)))


def downgraded(
    group: ConsumerGroup,
    leaving: Collection[ConsumerMember],
    joining: ConsumerMember | None,
    shard: GroupShard,
) -> Group:
    """Return a classic group with the members of a consumer group, less those that leave.

    Each has what the target assignment gives it: `joining` has the part of the static member it replaces.
    """
    gone = {member.member_id for member in leaving}
    classic = Group(
        group.name,
        GroupState.STABLE,
        state_since_ms=shard.now_ms,
        generation=group.epoch,
        protocol_type=CONSUMER,
        offsets=group.offsets,
    )
    names = shard.host.metadata().topic_names
    members = [member for member_id, member in group.members.items() if member_id not in gone]
    for member in (*members, *((joining,) if joining is not None else ())):
        metadata = member.metadata
        assert metadata.classic is not None
        target = group.target_of(member.member_id, metadata.instance_id)
        classic.add(
            Member(
                member.member_id,
                metadata.instance_id,
                metadata.client_id,
                metadata.client_host,
                metadata.classic.protocols,
                metadata.classic.session_timeout_ms,
                metadata.rebalance_timeout_ms,
                encoded(target, names),
            )
        )
    classic.protocol = classic.vote()
    return classic


def encoded(partitions: Mapping[bytes, Collection[int]], names: Mapping[bytes, str]) -> bytes:
    """Encode partitions as members of the classic protocol get them. Those of deleted topics are left out."""
    return encode_assignment(
        {names[topic]: sorted(numbers) for topic, numbers in partitions.items() if topic in names}
    )
