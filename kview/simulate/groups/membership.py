"""Joining, assigning, heartbeats and leaving: the classic rebalance (Kafka's GroupMetadataManager)."""

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.group import Group, GroupState, Member
from kview.simulate.groups.host import MS
from kview.simulate.groups.records import Change, GroupKey
from kview.simulate.groups.results import (
    JoinDone,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncDone,
    SyncRequest,
    SyncResult,
)
from kview.simulate.groups.shard import Shard

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a member may wait in its first JoinGroup: its client may be gone, and sends no heartbeats yet."""


class Membership:
    """The members of one shard's groups."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    # --- joining

    def join(self, group: Group, request: JoinRequest, done: JoinDone) -> None:
        """JoinGroup, of a new member or a known one."""
        if not group.supports(request.protocol_type, (offered.name for offered in request.protocols)):
            done(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        elif not request.member_id:
            self._join_new(group, request, done)
        elif request.member_id in group.pending_members:
            self._shard.cancel(group.pending_members.pop(request.member_id))
            self._add(group, request, request.member_id, done)
        else:
            fault = group.fault_of(request.member_id, request.group_instance_id)
            if fault is ErrorCode.NONE:
                self._rejoin(group, group.members[request.member_id], request, done)
            else:
                done(JoinResult(fault, request.member_id))

    def _join_new(self, group: Group, request: JoinRequest, done: JoinDone) -> None:
        instance = request.group_instance_id
        if len(group.members) >= self._shard.settings.group_max_size:
            done(JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
            return
        member_id = f"{request.client_id if instance is None else instance}-{self._shard.host.random_id()}"
        if instance is not None and instance in group.static_members:
            old = group.members[group.static_members[instance]]
            self._replace_static(group, old, member_id, request, done)
        elif instance is None and request.require_known_member_id:
            group.pending_members[member_id] = self._shard.after(
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
        self.restart_session(group, member)
        self._rebalance(group)

    def _rejoin(self, group: Group, member: Member, request: JoinRequest, done: JoinDone) -> None:
        unchanged = member.protocols == request.protocols
        if unchanged and (
            group.state is GroupState.COMPLETING_REBALANCE
            or (group.state is GroupState.STABLE and member.member_id != group.leader)
        ):
            done(self._joined(group, member))  # the earlier answer was lost, or nothing is new
            return
        self._update(member, request, done)
        self._rebalance(group)

    def _update(self, member: Member, request: JoinRequest, done: JoinDone) -> None:
        member.answer_join(JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.join_done = done

    def _replace_static(
        self, group: Group, old: Member, member_id: str, request: JoinRequest, done: JoinDone
    ) -> None:
        """A static member's process came back: it takes the place, the id it had is fenced (KIP-345)."""
        old_id = old.member_id
        led = group.leader == old_id
        old.answer_join(JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_id))
        old.answer_sync(SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        self._shard.cancel(old.session_timer)
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
        self.restart_session(group, member)
        if group.state is GroupState.STABLE and unchanged:
            self._answer_replaced(group, member, old_id if led else group.leader or "", request, done)
            return
        group.pending_sync.pop(old_id, None)
        member.join_done = done
        self._rebalance(group)

    def _answer_replaced(
        self, group: Group, member: Member, leader: str, request: JoinRequest, done: JoinDone
    ) -> None:
        """Nothing changes for the others: the member is told of the generation there is.

        To a leader of before v9 its old id is named as leader, so that it does not assign; from v9 on it is
        told to leave the assignment out (KIP-814).
        """

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                done(JoinResult(code, member.member_id))
                return
            result = self._joined(group, member, skip_assignment=True)
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

        self._shard.write([self._change(group)], None, written)

    def _joined(self, group: Group, member: Member, skip_assignment: bool = False) -> JoinResult:
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

    # --- the rebalance

    def _rebalance(self, group: Group) -> None:
        """Begins a rebalance, or ends the gathering of one under way if that was what it waited for."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self._maybe_complete(group)
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
            group.rebalance_timer = self._shard.after(
                group.rebalance_timeout_ms(), lambda: self._complete(group)
            )
            self._maybe_complete(group)

    def _delay_initial(self, group: Group, delay_ms: int, left_ms: int) -> None:
        """An empty group waits for more members, again while new ones come, up to the rebalance timeout."""

        def due() -> None:
            if group.new_member_added and left_ms > 0:
                group.new_member_added = False
                again_ms = min(self._shard.settings.group_initial_rebalance_delay_ms, left_ms)
                self._delay_initial(group, again_ms, left_ms - again_ms)
            else:
                self._complete(group)

        group.rebalance_timer = self._shard.after(delay_ms, due)

    def _maybe_complete(self, group: Group) -> None:
        gathering = group.state is GroupState.PREPARING_REBALANCE
        if gathering and group.before_rebalance is not GroupState.EMPTY and group.all_joined():
            self._complete(group)

    def _complete(self, group: Group) -> None:
        """Ends the gathering: who has not come is out, unless static; the others hear of their generation."""
        shard = self._shard
        shard.cancel(group.rebalance_timer)
        absent = [m for m in group.members.values() if m.join_done is None and m.group_instance_id is None]
        for member in absent:
            shard.cancel(member.session_timer)
            group.remove(member.member_id)
        if group.members and not group.elect_leader():
            # Static members alone, none of them back: they are waited for until their sessions end.
            group.rebalance_timer = shard.after(group.rebalance_timeout_ms(), lambda: self._complete(group))
            return
        group.generation += 1
        if not group.members:
            group.protocol = None
            group.leader = None
            group.enter(GroupState.EMPTY, shard.now_ms)
            shard.write([self._change(group)], None, lambda code: None)  # nobody waits for this one
            return
        group.protocol = group.vote()
        group.enter(GroupState.COMPLETING_REBALANCE, shard.now_ms)
        joined = list(group.members.values())
        for member in joined:
            member.is_new = False
            group.pending_sync[member.member_id] = None
            self.restart_session(group, member)
        generation = group.generation
        group.sync_timer = shard.after(
            group.rebalance_timeout_ms(), lambda: self._sync_expired(group, generation)
        )
        for member in joined:
            member.answer_join(self._joined(group, member))

    def _sync_expired(self, group: Group, generation: int) -> None:
        """Members that joined and did not ask for their assignment in time are out."""
        if group.generation != generation or not group.pending_sync:
            return
        for member_id in list(group.pending_sync):
            self._shard.cancel(group.members[member_id].session_timer)
            group.remove(member_id)
        self._rebalance(group)

    # --- the assignment

    def sync(self, group: Group, request: SyncRequest, done: SyncDone) -> None:
        """SyncGroup, with the assignment from the leader and without from the others."""
        fault = group.fault_of(request.member_id, request.group_instance_id)
        if fault is ErrorCode.NONE and request.generation != group.generation:
            fault = ErrorCode.ILLEGAL_GENERATION
        other = (request.protocol_type or group.protocol_type) != group.protocol_type or (
            request.protocol or group.protocol
        ) != group.protocol
        if fault is ErrorCode.NONE and other:
            fault = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if fault is ErrorCode.NONE and group.state is GroupState.PREPARING_REBALANCE:
            fault = ErrorCode.REBALANCE_IN_PROGRESS
        if fault is not ErrorCode.NONE:
            done(SyncResult(fault))
            return
        member = group.members[request.member_id]
        group.pending_sync.pop(member.member_id, None)
        if group.state is GroupState.STABLE:
            self.restart_session(group, member)
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
                return  # another rebalance has begun and answered everyone
            if code is not ErrorCode.NONE:
                for member in group.members.values():
                    member.assignment = b""
                    member.answer_sync(SyncResult(code))
                self._rebalance(group)
                return
            group.enter(GroupState.STABLE, self._shard.now_ms)
            for member in list(group.members.values()):
                if member.sync_done is not None:
                    self.restart_session(group, member)
                member.answer_sync(
                    SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol, member.assignment)
                )

        self._shard.write([self._change(group)], None, written)

    # --- sessions

    def heartbeat(
        self, group: Group, generation: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        """Heartbeat: it restarts the session also while a rebalance is under way."""
        fault = group.fault_of(member_id, group_instance_id)
        if fault is not ErrorCode.NONE:
            return fault
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.restart_session(group, group.members[member_id])
        gathering = group.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if gathering else ErrorCode.NONE

    def restart_session(self, group: Group, member: Member) -> None:
        """The member was heard of: its session begins anew."""
        timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        member.session_ends_us = self._shard.host.now_us() + timeout_ms * MS
        timer = member.session_timer
        if timer is not None and timer.time_us > member.session_ends_us:
            self._shard.cancel(timer)
            timer = None
        if timer is None:
            self._arm(group, member)

    def _arm(self, group: Group, member: Member) -> None:
        left_us = member.session_ends_us - self._shard.host.now_us()
        member.session_timer = self._shard.after(-(-left_us // MS), lambda: self._session_due(group, member))

    def _session_due(self, group: Group, member: Member) -> None:
        member.session_timer = None
        if group.members.get(member.member_id) is not member:
            return
        waits = not member.is_new and (member.join_done is not None or member.sync_done is not None)
        if member.session_ends_us > self._shard.host.now_us():
            self._arm(group, member)
        elif waits:
            self.restart_session(group, member)  # who waits for an answer sends no heartbeats
        else:
            self._remove(group, member)

    def _pending_expired(self, group: Group, member_id: str) -> None:
        if group.pending_members.pop(member_id, None) is not None:
            self._maybe_complete(group)

    # --- leaving

    def leave(self, group: Group, leaving: LeavingMember) -> ErrorCode:
        """One member of a LeaveGroup; a static one may be named by its instance id alone."""
        member_id, instance = leaving
        if not member_id and instance is not None:
            member_id = group.static_members.get(instance, "")
        if member_id in group.pending_members:
            self._shard.cancel(group.pending_members.pop(member_id))
            self._maybe_complete(group)
            return ErrorCode.NONE
        fault = group.fault_of(member_id, instance)
        if fault is ErrorCode.NONE:
            self._remove(group, group.members[member_id])
        return fault

    def _remove(self, group: Group, member: Member) -> None:
        member.answer_join(JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, ""))
        member.answer_sync(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        self._shard.cancel(member.session_timer)
        group.remove(member.member_id)
        self._rebalance(group)

    # --- the shard's life

    def start_sessions(self) -> None:
        """Every member of the loaded groups gets a whole session to be heard of."""
        for group in self._shard.groups.values():
            for member in group.members.values():
                self.restart_session(group, member)

    def answer_all(self, code: ErrorCode) -> None:
        """Everyone who waits hears this error."""
        for group in self._shard.groups.values():
            for member in list(group.members.values()):
                member.answer_join(JoinResult(code, member.member_id))
                member.answer_sync(SyncResult(code))

    def _change(self, group: Group) -> Change:
        return GroupKey(group.name), group.value()
