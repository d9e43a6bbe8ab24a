"""How members join their groups, send heartbeats and leave. Source: Kafka's GroupMetadataManager."""

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.group import Group, GroupState, Member
from kview.simulate.groups.rebalance import Rebalance, change, joined
from kview.simulate.groups.results import (
    JoinDone,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncDone,
    SyncRequest,
    SyncResult,
)
from kview.simulate.groups.shard import GroupShard

MEMBER_ID_BYTES_MAX = 32_767
"""Limit of a string on the wire and in the log. A member's id is its client id or instance id and a UUID."""


class Membership:
    """Handles how the members of one shard's groups join, stay and leave."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self._rebalance = Rebalance(shard)
        self.sessions = self._rebalance.sessions

    # --- joining

    def join(self, group: Group, request: JoinRequest, done: JoinDone) -> None:
        """Handle JoinGroup from a new or a known member."""
        if not group.supports(request.protocol_type, (offered.name for offered in request.protocols)):
            done(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        elif not request.member_id:
            self._join_new(group, request, done)
        elif request.member_id in group.pending_members:
            self._shard.cancel(group.pending_members.pop(request.member_id))
            self._add(group, request, request.member_id, done)
        else:
            refusal = group.refusal_of(request.member_id, request.group_instance_id)
            if refusal is ErrorCode.NONE:
                self._rejoin(group, group.members[request.member_id], request, done)
            else:
                done(JoinResult(refusal, request.member_id))

    def _join_new(self, group: Group, request: JoinRequest, done: JoinDone) -> None:
        instance = request.group_instance_id
        if len(group.members) >= self._shard.settings.group_max_size:
            done(JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
            return
        member_id = f"{request.client_id if instance is None else instance}-{self._shard.host.random_id()}"
        if len(member_id.encode()) > MEMBER_ID_BYTES_MAX:
            done(JoinResult(ErrorCode.INVALID_REQUEST, ""))
        elif instance is not None and instance in group.static_members:
            old = group.members[group.static_members[instance]]
            self._replace_static(group, old, member_id, request, done)
        elif instance is None and request.require_known_member_id:
            group.pending_members[member_id] = self._shard.time_out(
                request.session_timeout_ms, lambda: self._pending_expired(group, member_id)
            )
            done(JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, request, member_id, done)

    def _add(self, group: Group, request: JoinRequest, member_id: str, done: JoinDone) -> None:
        if not group.members:
            group.protocol_type = request.protocol_type
        member = Member(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.protocols,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            is_new=True,
            join_done=done,
        )
        group.add(member)
        if group.state is GroupState.PREPARING_REBALANCE and group.before_rebalance is GroupState.EMPTY:
            group.new_member_added = True
        self.sessions.restart(group, member)
        self._rebalance.begin(group)

    def _rejoin(self, group: Group, member: Member, request: JoinRequest, done: JoinDone) -> None:
        unchanged = member.protocols == request.protocols
        if unchanged and (
            group.state is GroupState.COMPLETING_REBALANCE
            or (group.state is GroupState.STABLE and member.member_id != group.leader)
        ):
            done(joined(group, member))  # The member missed the earlier answer, or nothing has changed.
            return
        self._update(member, request, done)
        self._rebalance.begin(group)

    def _update(self, member: Member, request: JoinRequest, done: JoinDone) -> None:
        member.answer_join(JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.join_done = done

    def _replace_static(
        self, group: Group, old: Member, member_id: str, request: JoinRequest, done: JoinDone
    ) -> None:
        """Replace a static member whose process came back, and fence its old id (KIP-345)."""
        old_id = old.member_id
        led = group.leader == old_id
        old.answer_join(JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_id))
        old.answer_sync(SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        self.sessions.stop(group, old)
        unchanged = old.protocols == request.protocols or (
            group.protocol in {offered.name for offered in request.protocols}
            and [offered.metadata for offered in request.protocols if offered.name == group.protocol]
            == [old.metadata(group.protocol)]
        )
        member = Member(
            member_id,
            old.group_instance_id,
            request.client_id,
            request.client_host,
            request.protocols,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            old.assignment,
        )
        group.members = {
            member_id if known == old_id else known: member if known == old_id else kept
            for known, kept in group.members.items()
        }
        group.static_members[old.group_instance_id or ""] = member_id
        if led:
            group.leader = member_id
        self.sessions.restart(group, member)
        if group.state is GroupState.STABLE and unchanged:
            self._answer_replaced(group, member, old_id if led else group.leader or "", request, done)
            return
        group.pending_sync.pop(old_id, None)
        member.join_done = done
        self._rebalance.begin(group)

    def _answer_replaced(
        self, group: Group, member: Member, leader: str, request: JoinRequest, done: JoinDone
    ) -> None:
        """Answer with the current generation, because nothing changes for the other members.

        If the replaced member was the leader, its new process must not assign partitions again. From
        JoinGroup v9 on, the answer asks it to skip the assignment (KIP-814). Before v9, the answer names the
        old member id as the leader.
        """

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                done(JoinResult(code, member.member_id))
                return
            result = joined(group, member, skip_assignment=True)
            if not request.supports_skipping_assignment:
                result = JoinResult(
                    result.error_code,
                    result.member_id,
                    result.generation,
                    result.protocol_type,
                    result.protocol,
                    leader,
                )
            done(result)

        self._shard.write([change(group)], None, written)

    # --- staying in the group

    def sync(self, group: Group, request: SyncRequest, done: SyncDone) -> None:
        """Handle SyncGroup; see `Rebalance.sync`."""
        self._rebalance.sync(group, request, done)

    def heartbeat(
        self, group: Group, generation: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        """Handle Heartbeat, which restarts the session even during a rebalance."""
        refusal = group.refusal_of(member_id, group_instance_id)
        if refusal is not ErrorCode.NONE:
            return refusal
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.sessions.restart(group, group.members[member_id])
        gathering = group.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if gathering else ErrorCode.NONE

    def _pending_expired(self, group: Group, member_id: str) -> None:
        if group.pending_members.pop(member_id, None) is not None:
            self._rebalance.maybe_complete(group)

    # --- leaving

    def leave(self, group: Group, leaving: LeavingMember) -> ErrorCode:
        """Remove one member of a LeaveGroup. A static member may be named by its instance id alone."""
        member_id, instance = leaving
        if not member_id and instance is not None:
            member_id = group.static_members.get(instance, "")
        if member_id in group.pending_members:
            self._shard.cancel(group.pending_members.pop(member_id))
            self._rebalance.maybe_complete(group)
            return ErrorCode.NONE
        refusal = group.refusal_of(member_id, instance)
        if refusal is ErrorCode.NONE:
            self._rebalance.remove(group, group.members[member_id])
        return refusal

    # --- groups that become or were consumer groups

    def retire(self, group: Group) -> None:
        """End everything that a group waits for, because a consumer group has taken its place."""
        shard = self._shard
        for timer in (group.rebalance_timer, group.sync_timer, *group.pending_members.values()):
            shard.cancel(timer)
        group.enter(GroupState.DEAD, shard.now_ms)
        for member in group.members.values():
            self.sessions.stop(group, member)
            member.answer_join(JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            member.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))

    def adopt(self, group: Group, rebalances: bool) -> None:
        """Start the sessions of a group that has taken the place of a consumer group."""
        for member in group.members.values():
            self.sessions.restart(group, member)
        if rebalances:
            self._rebalance.begin(group)

    # --- loading and closing the shard

    def start_sessions(self) -> None:
        """Start a session of full length for every member of the loaded groups."""
        for group in self._shard.classic_groups():
            for member in group.members.values():
                self.sessions.restart(group, member)

    def answer_all(self, code: ErrorCode) -> None:
        """Answer every waiting JoinGroup and SyncGroup with this error."""
        for group in self._shard.classic_groups():
            for member in list(group.members.values()):
                member.answer_join(JoinResult(code, member.member_id))
                member.answer_sync(SyncResult(code))
