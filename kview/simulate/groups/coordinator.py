"""One broker's group coordinator, which answers the group APIs for the offsets partitions the broker leads.

A `done` callback is called once, immediately or from a later event, but never if the broker's process dies
first. The callback must not call back into the coordinator.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.host import Host
from kview.simulate.coordination.of_cluster import LOAD_MS
from kview.simulate.coordination.placement import partition_of
from kview.simulate.coordination.share_states import ShareStates
from kview.simulate.groups import offsets
from kview.simulate.groups.classic_members import ClassicMembers
from kview.simulate.groups.consumer_checks import check
from kview.simulate.groups.consumer_group import ConsumerGroup, wanted_assignor
from kview.simulate.groups.consumer_membership import ConsumerMembership
from kview.simulate.groups.consumer_protocol import CONSUMER
from kview.simulate.groups.consumer_results import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribedConsumerGroup,
    HeartbeatDone,
    Refused,
)
from kview.simulate.groups.group import Group, GroupState
from kview.simulate.groups.membership import Membership
from kview.simulate.groups.records import GroupKey
from kview.simulate.groups.results import (
    NO_MEMBER,
    CommitDone,
    CommitRequest,
    CommitResult,
    DeleteDone,
    DescribedGroup,
    DescribedMember,
    FetchedOffsets,
    JoinDone,
    JoinRequest,
    JoinResult,
    LeaveResult,
    LeavingMember,
    LeftMember,
    ListedGroup,
    ListResult,
    OffsetDeleteDone,
    OffsetDeleteResult,
    SyncDone,
    SyncRequest,
    SyncResult,
)
from kview.simulate.groups.settings import GroupSettings
from kview.simulate.groups.shard import AnyGroup, GroupShard
from kview.simulate.groups.share_group import ShareGroup
from kview.simulate.groups.share_membership import ShareMembership
from kview.simulate.groups.share_membership import check as check_share
from kview.simulate.groups.share_offsets import Ends, ShareOffsets, TopicCode, TopicRows
from kview.simulate.groups.share_results import (
    DescribedShareGroup,
    ShareHeartbeat,
    ShareHeartbeatDone,
    ShareHeartbeatResult,
)
from kview.simulate.groups.streams_group import StreamsGroup, StreamsGroupState
from kview.simulate.groups.streams_membership import StreamsMembership
from kview.simulate.groups.streams_membership import check as check_streams
from kview.simulate.groups.streams_results import (
    DescribedStreamsGroup,
    StreamsHeartbeat,
    StreamsHeartbeatDone,
    StreamsHeartbeatResult,
)

METADATA_BYTES_MAX = 1 << 20
"""Limit of a member's subscriptions, in bytes. They are held in memory until the member's session ends, and
more would not fit into a record of `__consumer_offsets`."""


class GroupCoordinator:
    """One broker's coordinator.

    `elected`, `resigned`, `topics_changed` and `process_ended` inform it about changes at its broker.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        settings: GroupSettings,
        states: ShareStates | None = None,
        ends: Ends = lambda topic, partition: None,
    ) -> None:
        self.broker = broker
        self._states = states
        self._ends = ends
        self._host = host
        self._settings = settings
        self._shards: dict[int, GroupShard] = {}
        self._memberships: dict[int, Membership] = {}
        self._consumers: dict[int, ConsumerMembership] = {}
        self._classic_members: dict[int, ClassicMembers] = {}
        """Those in consumer groups."""
        self._shares: dict[int, ShareMembership] = {}
        self._share_offsets: dict[int, ShareOffsets] = {}
        self._streams: dict[int, StreamsMembership] = {}
        self._topics: Mapping[bytes, str] = {}

    # --- changes at the broker

    def elected(self, partition: int, epoch: int = 0, load_ms: int = LOAD_MS) -> None:
        """Load the groups of an offsets partition that the broker now leads, after `load_ms`."""
        self.resigned(partition)
        shard = self._shards[partition] = GroupShard(self.broker, self._host, self._settings, partition)
        membership = self._memberships[partition] = Membership(shard)
        consumers = self._consumers[partition] = ConsumerMembership(shard, membership)
        self._classic_members[partition] = ClassicMembers(shard, consumers)
        shares = self._shares[partition] = ShareMembership(shard, self._states)
        streams = self._streams[partition] = StreamsMembership(shard)
        if self._states is not None:
            self._share_offsets[partition] = ShareOffsets(shard, shares, self._states, self._ends)

        def load() -> None:
            shard.load()
            membership.start_sessions()
            consumers.start_sessions()
            consumers.topics_created()
            shares.start_sessions()
            streams.start_sessions()
            interval_ms = self._settings.offsets_retention_check_interval_ms
            shard.every(interval_ms, lambda: offsets.expire(shard))

        shard.load_after(load_ms, load)

    def hold_sessions(self, members: Iterable[tuple[str, str]], longer_us: int) -> None:
        """Let the sessions of these (group, member id) end later, as far as they are members here."""
        for group, member_id in members:
            for partition, membership in self._memberships.items():
                membership.sessions.hold(group, member_id, longer_us)
                self._consumers[partition].hold(group, member_id, longer_us)
                self._shares[partition].hold(group, member_id, longer_us)
                self._streams[partition].hold(group, member_id, longer_us)

    def resigned(self, partition: int) -> None:
        """Release the groups of an offsets partition that the broker no longer leads."""
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.close(answer=True)
            del self._consumers[partition], self._classic_members[partition], self._shares[partition]
            del self._streams[partition]
            self._share_offsets.pop(partition, None)
            self._memberships.pop(partition).answer_all(ErrorCode.NOT_COORDINATOR)

    def topics_changed(self) -> None:
        """Delete the committed offsets of topics that no longer exist, and note new topics."""
        for shard in self._shards.values():
            offsets.forget_deleted_topics(shard)
        for shares in self._shares.values():
            shares.forget_deleted_topics()
        before, self._topics = self._topics, self._host.metadata().topic_names
        if self._topics.keys() - before.keys():
            for consumers in self._consumers.values():
                consumers.topics_created()

    def process_ended(self) -> None:
        """Drop all state and waiting clients, because the process has ended."""
        for shard in self._shards.values():
            shard.close(answer=False)
        self._shards.clear()
        self._memberships.clear()
        self._consumers.clear()
        self._classic_members.clear()
        self._shares.clear()
        self._share_offsets.clear()
        self._streams.clear()

    # --- finding the coordinator

    def find(self, group: str) -> int:
        """Return the broker that coordinates this group according to this broker's metadata, or −1."""
        return self._host.leader(self.partition_of(group))

    def partition_of(self, group: str) -> int:
        """Return the partition of `__consumer_offsets` that has this group."""
        return partition_of(group, self._settings.offsets_topic_num_partitions)

    def refusal(self, group: str) -> ErrorCode:
        """Return why this coordinator cannot answer for the group, or NONE."""
        shard = self._shards.get(self.partition_of(group))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else ErrorCode.NONE

    def _find(self, group: str, refusal: ErrorCode) -> tuple[AnyGroup | None, ErrorCode]:
        """Return the group and an error code.

        The group is None if the request is refused or the group does not exist. In the latter case the code
        is `refusal`.
        """
        return self._known(group, refusal) if group else (None, ErrorCode.INVALID_GROUP_ID)

    def _known(self, group: str, refusal: ErrorCode) -> tuple[AnyGroup | None, ErrorCode]:
        """Do the same as `_find` for requests that take the empty name, which can have offsets."""
        code = self.refusal(group)
        if code is not ErrorCode.NONE:
            return None, code
        known_group = self._shards[self.partition_of(group)].groups.get(group)
        return known_group, ErrorCode.NONE if known_group is not None else refusal

    # --- membership

    def join(self, request: JoinRequest, done: JoinDone) -> None:
        """Let a member join or rejoin, and answer once the rebalance has gathered all members."""
        low, high = (
            self._settings.group_min_session_timeout_ms,
            self._settings.group_max_session_timeout_ms,
        )
        unknown = ErrorCode.UNKNOWN_MEMBER_ID if request.member_id else ErrorCode.NONE
        group, code = self._find(request.group, unknown)
        if code is ErrorCode.NONE and not low <= request.session_timeout_ms <= high:
            code = ErrorCode.INVALID_SESSION_TIMEOUT
        elif code is ErrorCode.NONE and sum(len(p.metadata) for p in request.protocols) > METADATA_BYTES_MAX:
            code = ErrorCode.INVALID_REQUEST
        if code is not ErrorCode.NONE:
            done(JoinResult(code, request.member_id))
            return
        if isinstance(group, ShareGroup) or (isinstance(group, StreamsGroup) and not group.empty):
            done(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
            return
        partition = self.partition_of(request.group)
        shard = self._shards[partition]
        if isinstance(group, ConsumerGroup) and not group.empty:
            self._classic_members[partition].join(group, request, done)
            return
        if isinstance(group, ConsumerGroup | StreamsGroup):
            before, group = group, Group(request.group, state_since_ms=shard.now_ms, offsets=group.offsets)
            if not group.supports(request.protocol_type, (offered.name for offered in request.protocols)):
                done(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
                return
            become = partial(shard.groups.__setitem__, request.group, group)
            refusals: list[ErrorCode] = []
            if not shard.change(list(before.tombstones()), become, refusals.append):
                done(JoinResult(refusals[0], request.member_id))
                return
        elif group is not None:
            self._memberships[partition].join(group, request, done)
            return
        else:
            group = shard.groups[request.group] = Group(request.group, state_since_ms=shard.now_ms)
        first = group.value()
        self._memberships[partition].join(group, request, done)
        if group.members or group.pending_members:
            shard.write([(GroupKey(group.name), first)], None, lambda code: None)
        elif not group.offsets:
            del shard.groups[request.group]  # No member was accepted, so the group is not created.

    def sync(self, request: SyncRequest, done: SyncDone) -> None:
        """Accept the assignment from the group's leader, or let another member wait for it."""
        group, code = self._find(request.group, ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ShareGroup | StreamsGroup):
            group, code = None, ErrorCode.UNKNOWN_MEMBER_ID
        if group is None:
            done(SyncResult(code))
        elif isinstance(group, ConsumerGroup):
            done(self._classic_members[self.partition_of(request.group)].sync(group, request))
        else:
            self._memberships[self.partition_of(request.group)].sync(group, request, done)

    def heartbeat(
        self, group: str, generation: int, member_id: str, group_instance_id: str | None = None
    ) -> ErrorCode:
        """Restart the member's session, and return an error code."""
        known_group, code = self._find(group, ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(known_group, ShareGroup | StreamsGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known_group is None:
            return code
        if isinstance(known_group, ConsumerGroup):
            members = self._classic_members[self.partition_of(group)]
            return members.heartbeat(known_group, generation, member_id, group_instance_id)
        membership = self._memberships[self.partition_of(group)]
        return membership.heartbeat(known_group, generation, member_id, group_instance_id)

    def leave(self, group: str, members: Sequence[LeavingMember]) -> LeaveResult:
        """Remove members from the group, and return the outcome for each."""
        known_group, code = self._find(group, ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(known_group, ConsumerGroup):
            leaving = self._classic_members[self.partition_of(group)]
            return LeaveResult(ErrorCode.NONE, leaving.leave(known_group, members))
        if known_group is None and code is not ErrorCode.UNKNOWN_MEMBER_ID:
            return LeaveResult(code)
        if known_group is None or isinstance(known_group, ShareGroup | StreamsGroup):
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            return LeaveResult(ErrorCode.NONE, tuple(LeftMember(*member, unknown) for member in members))
        membership = self._memberships[self.partition_of(group)]
        left = tuple(LeftMember(*member, membership.leave(known_group, member)) for member in members)
        return LeaveResult(ErrorCode.NONE, left)

    def consumer_heartbeat(self, request: ConsumerHeartbeat, done: HeartbeatDone) -> None:
        """Handle ConsumerGroupHeartbeat, and answer when its changes are committed."""
        self._heartbeat(
            request.group,
            lambda: check(request, self._settings.consumer_assignors),
            lambda partition: self._consumers[partition].heartbeat(request, done),
            lambda refused: done(ConsumerHeartbeatResult(refused.error_code, refused.message)),
        )

    def share_heartbeat(self, request: ShareHeartbeat, done: ShareHeartbeatDone) -> None:
        """Handle ShareGroupHeartbeat, and answer when its changes are committed."""
        self._heartbeat(
            request.group,
            lambda: check_share(request),
            lambda partition: self._shares[partition].heartbeat(request, done),
            lambda refused: done(ShareHeartbeatResult(refused.error_code, refused.message)),
        )

    def streams_heartbeat(self, request: StreamsHeartbeat, done: StreamsHeartbeatDone) -> None:
        """Handle StreamsGroupHeartbeat, and answer when its changes are committed."""
        self._heartbeat(
            request.group,
            lambda: check_streams(request),
            lambda partition: self._streams[partition].heartbeat(request, done),
            lambda refused: done(StreamsHeartbeatResult(refused.error_code, refused.message)),
        )

    def _heartbeat(
        self,
        group: str,
        check: Callable[[], None],
        handle: Callable[[int], None],
        refuse: Callable[[Refused], None],
    ) -> None:
        """Let `handle`, which takes the group's partition, handle a heartbeat that passes `check`."""
        try:
            check()
            code = self.refusal(group)
            if code is not ErrorCode.NONE:
                raise Refused(code, None)
            handle(self.partition_of(group))
        except Refused as refused:
            refuse(refused)

    # --- offsets

    def commit(self, request: CommitRequest, done: CommitDone) -> None:
        """Append the offsets to `__consumer_offsets`, and answer when that append is committed."""
        code = self.refusal(request.group)
        if request.producer is not None and not request.group:
            code = ErrorCode.INVALID_GROUP_ID
        if code is not ErrorCode.NONE:
            done(CommitResult((code,) * len(request.offsets)))
            return
        refused: dict[int, ErrorCode] = {}
        for i, offset in enumerate(request.offsets):
            topic_id = self._host.topic_id(offset.topic, offset.partition)
            if topic_id is None:
                refused[i] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif offset.topic_id not in (None, topic_id):
                refused[i] = ErrorCode.UNKNOWN_TOPIC_ID
            elif len(offset.metadata.encode()) > self._settings.offset_metadata_max_bytes:
                refused[i] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        partition = self.partition_of(request.group)
        offsets.commit(self._shards[partition], self._memberships[partition], request, refused, done)

    def fetch_offsets(
        self,
        group: str,
        partitions: Sequence[tuple[str, int]] | None,
        require_stable: bool = False,
        member: tuple[str | None, int] = NO_MEMBER,
    ) -> FetchedOffsets:
        """Return a group's committed offsets of these (topic, partition) pairs, or all of them if
        `partitions` is None.

        With `require_stable`, those that an open transaction commits have an error. A consumer group's
        `member` is its id and epoch.
        """
        code = self.refusal(group)
        if code is not ErrorCode.NONE:
            return FetchedOffsets(group, code)
        shard = self._shards[self.partition_of(group)]
        code = offsets.fetch_refusal(shard.groups.get(group), *member)
        if code is not ErrorCode.NONE:
            return FetchedOffsets(group, code)
        return FetchedOffsets(group, code, offsets.fetch(shard, group, partitions, require_stable))

    def transaction_ended(self, partition: int, producer_id: int, is_commit: bool) -> None:
        """Put a transaction's offsets into force or forget them: its marker is in an offsets partition."""
        shard = self._shards.get(partition)
        if shard is not None and not shard.loading:
            shard.transaction_ended(producer_id, is_commit)

    # --- where share groups start

    def _shares_of(self, group: str) -> ShareOffsets | ErrorCode:
        code = self.refusal(group)
        found = self._share_offsets.get(self.partition_of(group))
        if code is not ErrorCode.NONE or found is None:
            return code or ErrorCode.COORDINATOR_NOT_AVAILABLE
        return found

    def describe_share_offsets(
        self,
        group: str,
        asked: Sequence[tuple[str, Sequence[int]]] | None,
        done: Callable[[ErrorCode, list[TopicRows]], None],
    ) -> None:
        """Describe where a share group starts in these partitions, or in all that it reads."""
        found = self._shares_of(group)
        if isinstance(found, ErrorCode):
            done(found, [])
        else:
            found.describe(group, asked, lambda rows: done(ErrorCode.NONE, rows))

    def alter_share_offsets(
        self,
        group: str,
        asked: Sequence[tuple[str, Sequence[tuple[int, int]]]],
        done: Callable[[ErrorCode, str | None, list[TopicRows]], None],
    ) -> None:
        """Let a share group without members start elsewhere."""
        found = self._alterable(group)
        if isinstance(found, ShareOffsets):
            found.alter(group, asked, lambda rows: done(ErrorCode.NONE, None, rows))
        else:
            done(*found, [])

    def delete_share_offsets(
        self,
        group: str,
        topics: Sequence[str],
        done: Callable[[ErrorCode, str | None, list[TopicCode]], None],
    ) -> None:
        """Forget where a share group without members starts in topics."""
        found = self._alterable(group)
        if not isinstance(found, ShareOffsets):
            done(*found, [])
            return
        known_group = self._shards[self.partition_of(group)].groups.get(group)
        if isinstance(known_group, ShareGroup):
            found.delete(known_group, topics, lambda rows: done(ErrorCode.NONE, None, rows))
        else:
            done(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group} not found.", [])

    def _alterable(self, group: str) -> ShareOffsets | tuple[ErrorCode, str | None]:
        """Return the offsets of a share group that can be changed, or why they cannot."""
        if not group:
            return ErrorCode.INVALID_GROUP_ID, "The group id is invalid."
        found = self._shares_of(group)
        if isinstance(found, ErrorCode):
            return found, None
        known_group = self._shards[self.partition_of(group)].groups.get(group)
        if known_group is None or (isinstance(known_group, ShareGroup) and known_group.empty):
            return found
        if isinstance(known_group, ShareGroup):
            return ErrorCode.NON_EMPTY_GROUP, "The group is not empty."
        return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group} is not a share group."

    # --- descriptions

    def describe(self, group: str) -> DescribedGroup:
        """Describe a group's state and members."""
        known_group, code = self._known(group, ErrorCode.GROUP_ID_NOT_FOUND)
        if known_group is None:
            state = GroupState.DEAD.value if code is ErrorCode.GROUP_ID_NOT_FOUND else ""
            return DescribedGroup(group, code, state, message=_not_found(group, code))
        if not isinstance(known_group, Group):
            message = f"Group {group} is not a classic group."
            return DescribedGroup(group, ErrorCode.GROUP_ID_NOT_FOUND, GroupState.DEAD.value, message=message)
        return _described(known_group)

    def describe_consumer_group(self, group: str) -> DescribedConsumerGroup:
        """Describe a group of the consumer protocol."""
        known_group, code = self._find(group, ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(known_group, ConsumerGroup):
            return DescribedConsumerGroup(
                group,
                ErrorCode.NONE,
                None,
                known_group.state,
                known_group.epoch,
                known_group.target_epoch,
                wanted_assignor(
                    (member.metadata for member in known_group.members.values()),
                    self._settings.consumer_assignors,
                ),
                tuple(known_group.members.values()),
                known_group.targets,
            )
        return DescribedConsumerGroup(group, *_not_of_kind(group, known_group, code, "consumer"))

    def describe_share_group(self, group: str) -> DescribedShareGroup:
        """Describe a share group."""
        known_group, code = self._find(group, ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(known_group, ShareGroup):
            return DescribedShareGroup(
                group,
                ErrorCode.NONE,
                None,
                known_group.state,
                known_group.epoch,
                known_group.target_epoch,
                "simple",
                tuple(known_group.members.values()),
            )
        return DescribedShareGroup(group, *_not_of_kind(group, known_group, code, "share"))

    def describe_streams_group(self, group: str) -> DescribedStreamsGroup:
        """Describe a streams group."""
        known_group, code = self._find(group, ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(known_group, StreamsGroup):
            return DescribedStreamsGroup(
                group,
                ErrorCode.NONE,
                None,
                known_group.state,
                known_group.epoch,
                known_group.target_epoch,
                known_group.topology,
                known_group.configured,
                tuple(known_group.members.values()),
                known_group.targets,
            )
        return DescribedStreamsGroup(group, *_not_of_kind(group, known_group, code, "streams"))

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> ListResult:
        """List the groups that this broker coordinates.

        `states` and `types`, if not empty, select groups. They may be in upper or lower case. A group that is
        not ready is selected by another name than it is listed with, as in Kafka.
        """
        wanted = {state.lower() for state in states}
        loading = any(shard.loading for shard in self._shards.values())
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
        wanted_types = {name.lower() for name in types}
        groups = []
        for shard in self._shards.values():
            for group in shard.groups.values():
                kind = "classic" if isinstance(group, Group) else group.protocol_type
                state = group.state.value
                named = "not_ready" if group.state is StreamsGroupState.NOT_READY else state.lower()
                if (not wanted or named in wanted) and (not wanted_types or kind in wanted_types):
                    groups.append(ListedGroup(group.name, group.protocol_type, state, kind))
        return ListResult(code, tuple(sorted(groups, key=lambda listed: listed.group)))

    def delete(self, group: str, done: DeleteDone) -> None:
        """Delete an empty group and its offsets, and answer with an error code."""
        known_group, code = self._known(group, ErrorCode.GROUP_ID_NOT_FOUND)
        if known_group is not None and not known_group.empty:
            code = ErrorCode.NON_EMPTY_GROUP
        if known_group is None or code is not ErrorCode.NONE:
            done(code)
            return
        shard = self._shards[self.partition_of(group)]

        def forget(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and shard.groups.get(group) is known_group and known_group.empty:
                offsets.forget(shard, known_group, sorted(known_group.offsets), done)
            else:
                done(ErrorCode.NON_EMPTY_GROUP if code is ErrorCode.NONE else code)

        if isinstance(known_group, ShareGroup) and known_group.states.initialized:
            self._share_offsets[self.partition_of(group)].delete_all(known_group, forget)
        else:
            forget(ErrorCode.NONE)

    def delete_offsets(
        self, group: str, partitions: Sequence[tuple[str, int]], done: OffsetDeleteDone
    ) -> None:
        """Delete a group's offsets of partitions that none of its members reads."""
        known_group, code = self._find(group, ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(known_group, ShareGroup):
            known_group, code = None, ErrorCode.GROUP_ID_NOT_FOUND
        if known_group is None:
            done(OffsetDeleteResult(code))
            return
        if isinstance(known_group, Group) and known_group.members and known_group.protocol_type != CONSUMER:
            done(OffsetDeleteResult(ErrorCode.NON_EMPTY_GROUP))
            return
        read = known_group.subscribed_topics()
        unread = [key for key in partitions if key[0] not in read]
        shard = self._shards[self.partition_of(group)]

        def answer(error: ErrorCode) -> None:
            codes = (
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic in read else error for topic, _ in partitions
            )
            done(OffsetDeleteResult(ErrorCode.NONE, tuple(codes)))

        offsets.delete(shard, known_group, unread, answer)

    def groups(self) -> list[AnyGroup]:
        """Return the group objects themselves, for invariants and tests. Callers must not change them."""
        return [group for shard in self._shards.values() for group in shard.groups.values()]


def _not_found(group: str, code: ErrorCode) -> str | None:
    return f"Group {group} not found." if code is ErrorCode.GROUP_ID_NOT_FOUND else None


def _not_of_kind(
    group: str, known_group: AnyGroup | None, code: ErrorCode, kind: str
) -> tuple[ErrorCode, str | None]:
    """Return the error code and the message for a group that is of another kind or was not found (`code`)."""
    if known_group is None:
        return code, _not_found(group, code)
    return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group} is not a {kind} group."


def _described(group: Group) -> DescribedGroup:
    """Describe a group's state and members. Subscriptions are known while it is stable."""
    stable = group.state is GroupState.STABLE
    members = tuple(
        DescribedMember(
            m.member_id,
            m.group_instance_id,
            m.client_id,
            m.client_host,
            m.metadata(group.protocol) if stable else b"",
            m.assignment,
        )
        for m in group.members.values()
    )
    protocol = (group.protocol or "") if stable else ""
    return DescribedGroup(
        group.name, ErrorCode.NONE, group.state.value, group.protocol_type, protocol, members
    )
