"""Members of the classic protocol in consumer groups. Source: Kafka's GroupMetadataManager.

Such a member has an epoch as its generation. It joins again whenever it has to revoke or may get something,
which Heartbeat tells it, and fetches what it has with SyncGroup.
"""

from collections.abc import Sequence

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerGroup, ConsumerMember
from kview.simulate.groups.consumer_membership import (
    ConsumerMembership,
    Draft,
    Kind,
    joining_static,
    known_static,
)
from kview.simulate.groups.consumer_protocol import CONSUMER, decode_subscription
from kview.simulate.groups.consumer_records import ClassicMember, MemberMetadata, MemberState
from kview.simulate.groups.consumer_results import Refused
from kview.simulate.groups.conversion import downgraded, encoded, ids_of, may_downgrade
from kview.simulate.groups.results import (
    JoinDone,
    JoinRequest,
    JoinResult,
    LeavingMember,
    LeftMember,
    SyncRequest,
    SyncResult,
)
from kview.simulate.groups.settings import MigrationPolicy
from kview.simulate.groups.shard import GroupShard
from kview.wire.primitives import MalformedBytes


class ClassicMembers:
    """Handles the members of the classic protocol in one shard's consumer groups."""

    def __init__(self, shard: GroupShard, consumers: ConsumerMembership) -> None:
        self._shard = shard
        self._consumers = consumers

    # --- joining

    def join(self, group: ConsumerGroup, request: JoinRequest, done: JoinDone) -> None:
        """Handle JoinGroup, and answer when its changes are committed."""
        try:
            self._join(group, request, done)
        except Refused as refused:
            done(JoinResult(refused.error_code, request.member_id))

    def _join(self, group: ConsumerGroup, request: JoinRequest, done: JoinDone) -> None:
        shard, consumers = self._shard, self._consumers
        member_id = request.member_id or shard.host.random_uuid()
        if shard.settings.consumer_migration_policy is MigrationPolicy.DISABLED:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the migration of groups is disabled")
        consumers.check_size(group, request.member_id)
        if not group.supports(request.protocol_type, (offered.name for offered in request.protocols)):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "no common protocol")
        instance = request.group_instance_id
        if not request.member_id and instance is None and request.require_known_member_id:
            done(JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        replaces = None
        if instance is None:
            member = group.members.get(member_id, ConsumerMember(member_id))
        elif not request.member_id:
            member, replaces = joining_static(group, member_id, instance, classic=True)
        else:
            member = known_static(group, member_id, instance)
        try:
            subscription = decode_subscription(request.protocols[0].metadata)
        except MalformedBytes as error:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        known, topics = member.metadata, shard.host.metadata().topics
        metadata = MemberMetadata(
            known.instance_id if instance is None else instance,
            subscription.rack or known.rack_id,
            request.client_id,
            request.client_host,
            tuple(sorted(set(subscription.topics))),
            "",
            request.rebalance_timeout_ms,
            known.assignor,
            ClassicMember(request.session_timeout_ms, request.protocols),
        )
        draft = Draft(group, member, metadata, replaces)
        owned = ids_of([(topic, n) for topic, numbers in subscription.owned.items() for n in numbers], topics)
        consumers.update(draft)
        if replaces is not None and may_downgrade(group, [replaces], shard.settings, joining=1):
            self._downgrade(draft, owned, done)
            return
        consumers.reconcile(draft, *consumers.retarget(draft), owned)
        result = _joined(draft)

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else JoinResult(code, member_id))

        if consumers.write(draft, written):
            consumers.timeouts.cancel((Kind.REBALANCE, group.name, member_id))
            consumers.timeouts.cancel((Kind.JOIN, group.name, member_id))
            consumers.start_session(group, member_id)
            consumers.watch(Kind.SYNC, group, member_id, request.rebalance_timeout_ms)

    def _downgrade(self, draft: Draft, owned: dict[bytes, frozenset[int]], done: JoinDone) -> None:
        """Make the group a classic one: the last member of the consumer protocol comes back without it."""
        group, replaces = draft.group, draft.replaces
        assert replaces is not None
        stale = draft.epoch > group.target_epoch
        if not stale:
            partitions = group.target_of(draft.member.member_id, draft.metadata.instance_id)
            self._consumers.reconcile(draft, group.target_epoch, partitions, owned)
        joining = ConsumerMember(draft.member.member_id, draft.metadata, draft.current)
        classic = downgraded(group, [replaces], joining, self._shard)
        result = _joined(draft)

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else JoinResult(code, joining.member_id))

        self._consumers.downgrade(group, classic, written, rebalances=stale)

    # --- staying

    def sync(self, group: ConsumerGroup, request: SyncRequest) -> SyncResult:
        """Handle SyncGroup: return what the member has."""
        member, code = self._member(group, request.member_id, request.group_instance_id, request.generation)
        if member is None:
            return SyncResult(code)
        classic = member.metadata.classic
        assert classic is not None
        protocol = classic.protocols[0].name
        if (request.protocol_type or CONSUMER, request.protocol or protocol) != (CONSUMER, protocol):
            return SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        revokes = member.current.state is MemberState.UNREVOKED_PARTITIONS
        if group.target_epoch > member.current.epoch and not revokes:
            self._await_join(group, member)
            return SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)
        self._consumers.timeouts.cancel((Kind.SYNC, group.name, member.member_id))
        self._consumers.start_session(group, member.member_id)
        assignment = encoded(member.current.assigned, self._shard.host.metadata().topic_names)
        return SyncResult(ErrorCode.NONE, request.protocol_type, request.protocol, assignment)

    def heartbeat(
        self, group: ConsumerGroup, generation: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        """Handle Heartbeat: tell the member to join again if there is something to revoke or to get."""
        member, code = self._member(group, member_id, group_instance_id, generation)
        if member is None:
            return code
        self._consumers.start_session(group, member_id)
        current = member.current
        released = current.state is MemberState.UNRELEASED_PARTITIONS and not self._waits(group, member)
        revokes = current.state is MemberState.UNREVOKED_PARTITIONS
        if current.epoch < group.target_epoch or revokes or released:
            self._await_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _member(
        self, group: ConsumerGroup, member_id: str, instance: str | None, generation: int
    ) -> tuple[ConsumerMember | None, ErrorCode]:
        """Return a member of the classic protocol, or None and why its request is refused."""
        refusal = group.refusal_of(member_id, instance)
        if refusal is not ErrorCode.NONE:
            return None, refusal
        member = group.members[member_id]
        if member.metadata.classic is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        if member.current.epoch != generation:
            return None, ErrorCode.ILLEGAL_GENERATION
        return member, ErrorCode.NONE

    def _waits(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        """Return whether others still have all that the member does not have yet."""
        has = member.current.assigned
        return any(
            partition not in has.get(topic, {}) and (topic, partition) in group.owners
            for topic, partitions in group.targets.get(member.member_id, {}).items()
            for partition in partitions
        )

    def _await_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Remove the member if it does not join again within its rebalance timeout."""
        timeout_ms = member.metadata.rebalance_timeout_ms
        self._consumers.watch_if_absent(Kind.JOIN, group, member.member_id, timeout_ms)

    # --- leaving

    def leave(self, group: ConsumerGroup, leaving: Sequence[LeavingMember]) -> tuple[LeftMember, ...]:
        """Handle LeaveGroup, with which an admin may remove members of either protocol."""
        gone: dict[str, ConsumerMember] = {}
        left = []
        for member_id, instance in leaving:
            if instance is not None and not member_id:
                member_id = group.static_members.get(instance, "")
            code = group.refusal_of(member_id, instance)
            if code is ErrorCode.NONE:
                gone[member_id] = group.members[member_id]
            left.append(LeftMember(member_id, instance, code))
        if gone:
            self._consumers.remove(group, list(gone.values()))
        return tuple(left)


def _joined(draft: Draft) -> JoinResult:
    classic = draft.metadata.classic
    assert classic is not None
    return JoinResult(
        ErrorCode.NONE,
        draft.member.member_id,
        draft.current.epoch,
        CONSUMER,
        classic.protocols[0].name,
    )
