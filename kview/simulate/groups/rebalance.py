"""The classic rebalance: members gather, learn their generation, and receive the leader's assignment."""

from collections.abc import Callable

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.timeouts import Timeouts
from kview.simulate.groups.group import Group, GroupState, Member
from kview.simulate.groups.records import Change, GroupKey
from kview.simulate.groups.results import JoinResult, SyncDone, SyncRequest, SyncResult
from kview.simulate.groups.shard import GroupShard

GENERATION_MAX = 2**31 - 1
"""Limit of a generation, which is an int32. A client's own records in the log may name any."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""Longest time a new member waits in its first JoinGroup. It sends no heartbeats yet, so it may have gone
away."""


class Rebalance:
    """Handles the rebalances of one shard's groups, including those that begin when a session ends."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self.sessions = Sessions(shard, self.remove)

    def begin(self, group: Group) -> None:
        """Begin a rebalance.

        If the group is already gathering members, end the gathering if no other member is missing.
        """
        if group.state is GroupState.PREPARING_REBALANCE:
            self.maybe_complete(group)
            return
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._shard.cancel(group.sync_timer)
            group.pending_sync.clear()
            for member in group.members.values():
                member.assignment = b""
                member.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        group.enter(GroupState.PREPARING_REBALANCE, self._shard.now_ms)
        if group.before_rebalance is GroupState.EMPTY:
            delay_ms = self._shard.settings.group_initial_rebalance_delay_ms
            group.new_member_added = False
            self._delay_initial(group, delay_ms, max(0, group.rebalance_timeout_ms() - delay_ms))
        else:
            group.rebalance_timer = self._shard.time_out(
                group.rebalance_timeout_ms(), lambda: self._complete(group)
            )
            self.maybe_complete(group)

    def _delay_initial(self, group: Group, delay_ms: int, left_ms: int) -> None:
        """Delay the first rebalance of an empty group, and prolong the delay while more members join.

        The delay is prolonged by at most `left_ms` in total.
        """

        def due() -> None:
            if group.new_member_added and left_ms > 0:
                group.new_member_added = False
                again_ms = min(self._shard.settings.group_initial_rebalance_delay_ms, left_ms)
                self._delay_initial(group, again_ms, left_ms - again_ms)
            else:
                self._complete(group)

        group.rebalance_timer = self._shard.after(delay_ms, due)

    def maybe_complete(self, group: Group) -> None:
        """End the gathering of members if every member has joined.

        A group that was empty waits for the end of its initial delay instead.
        """
        gathering = group.state is GroupState.PREPARING_REBALANCE
        if gathering and group.before_rebalance is not GroupState.EMPTY and group.all_joined():
            self._complete(group)

    def _complete(self, group: Group) -> None:
        """End the gathering of members.

        Absent members are removed unless they are static. The others get a new generation.
        """
        shard = self._shard
        shard.cancel(group.rebalance_timer)
        absent = [m for m in group.members.values() if m.join_done is None and m.group_instance_id is None]
        for member in absent:
            self.sessions.stop(group, member)
            group.remove(member.member_id)
        if group.members and not group.elect_leader():
            # All members are static and none is back, so wait for them until their sessions end.
            group.rebalance_timer = shard.time_out(
                group.rebalance_timeout_ms(), lambda: self._complete(group)
            )
            return
        group.generation = group.generation % GENERATION_MAX + 1
        if not group.members:
            group.protocol = None
            group.leader = None
            group.enter(GroupState.EMPTY, shard.now_ms)
            shard.write([change(group)], None, lambda code: None)  # No client waits for this write.
            return
        group.protocol = group.vote()
        group.enter(GroupState.COMPLETING_REBALANCE, shard.now_ms)
        members = list(group.members.values())
        for member in members:
            member.is_new = False
            group.pending_sync[member.member_id] = None
            self.sessions.restart(group, member)
        generation = group.generation
        group.sync_timer = shard.time_out(
            group.rebalance_timeout_ms(), lambda: self._sync_expired(group, generation)
        )
        for member in members:
            member.answer_join(joined(group, member))

    def _sync_expired(self, group: Group, generation: int) -> None:
        """Remove members that joined but did not send SyncGroup in time."""
        if group.generation != generation or not group.pending_sync:
            return
        for member_id in list(group.pending_sync):
            self.sessions.stop(group, group.members[member_id])
            group.remove(member_id)
        self.begin(group)

    # --- the assignment

    def sync(self, group: Group, request: SyncRequest, done: SyncDone) -> None:
        """Handle SyncGroup, with which the leader also sends the assignment."""
        refusal = group.refusal_of(request.member_id, request.group_instance_id)
        if refusal is ErrorCode.NONE and request.generation != group.generation:
            refusal = ErrorCode.ILLEGAL_GENERATION
        other = (request.protocol_type or group.protocol_type) != group.protocol_type or (
            request.protocol or group.protocol
        ) != group.protocol
        if refusal is ErrorCode.NONE and other:
            refusal = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if refusal is ErrorCode.NONE and group.state is GroupState.PREPARING_REBALANCE:
            refusal = ErrorCode.REBALANCE_IN_PROGRESS
        if refusal is not ErrorCode.NONE:
            done(SyncResult(refusal))
            return
        member = group.members[request.member_id]
        group.pending_sync.pop(member.member_id, None)
        if group.state is GroupState.STABLE:
            self.sessions.restart(group, member)
            done(SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol, member.assignment))
            return
        member.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))  # an older request of the same member
        member.sync_done = done
        if member.member_id == group.leader:
            self._take_assignment(group, dict(request.assignments))

    def _take_assignment(self, group: Group, assignments: dict[str, bytes]) -> None:
        generation = group.generation
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")

        def written(code: ErrorCode) -> None:
            if group.generation != generation or group.state is not GroupState.COMPLETING_REBALANCE:
                return  # Another rebalance has begun and has answered everyone.
            if code is not ErrorCode.NONE:
                for member in group.members.values():
                    member.assignment = b""
                    member.answer_sync(SyncResult(code))
                self.begin(group)
                return
            group.enter(GroupState.STABLE, self._shard.now_ms)
            for member in list(group.members.values()):
                if member.sync_done is not None:
                    self.sessions.restart(group, member)
                member.answer_sync(
                    SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol, member.assignment)
                )

        self._shard.write([change(group)], None, written)

    def remove(self, group: Group, member: Member) -> None:
        """Remove a member, refuse the requests that it waits on, and begin a rebalance."""
        member.answer_join(JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, ""))
        member.answer_sync(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        self.sessions.stop(group, member)
        group.remove(member.member_id)
        self.begin(group)


def joined(group: Group, member: Member, skip_assignment: bool = False) -> JoinResult:
    """Return the JoinGroup answer for a member of the current generation."""
    leads = group.leader == member.member_id
    return JoinResult(
        ErrorCode.NONE,
        member.member_id,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader or "",
        skip_assignment and leads,
        group.joined_members() if leads else (),
    )


def change(group: Group) -> Change:
    """Return the group's current state as a change for the log."""
    return GroupKey(group.name), group.value()


# -- sessions of members


class Sessions:
    """The sessions of one shard's members. `ended` is called for each member whose session has ended.

    A session ends when its member sends nothing for the session timeout.
    """

    def __init__(self, shard: GroupShard, ended: Callable[[Group, Member], None]) -> None:
        self._timeouts: Timeouts[tuple[str, str]] = Timeouts(shard)
        self._ended = ended

    def restart(self, group: Group, member: Member) -> None:
        """Restart a member's session, because the member sent a request."""
        timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        key = group.name, member.member_id
        self._timeouts.start(key, timeout_ms, lambda: self._due(group, member))

    def hold(self, group: str, member_id: str, longer_us: int) -> None:
        """Let a member's session end later."""
        self._timeouts.hold((group, member_id), longer_us)

    def stop(self, group: Group, member: Member) -> None:
        """Forget a member's session, because the member is gone."""
        self._timeouts.cancel((group.name, member.member_id))

    def _due(self, group: Group, member: Member) -> None:
        if group.members.get(member.member_id) is not member:
            return
        if not member.is_new and (member.join_done is not None or member.sync_done is not None):
            self.restart(group, member)  # A member that waits for an answer sends no heartbeats.
        else:
            self._ended(group, member)
