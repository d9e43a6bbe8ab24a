"""How members of consumer groups join, stay and leave. Source: Kafka's GroupMetadataManager.

A heartbeat does it all: it changes a member's subscription, which raises the group's epoch; it calculates the
target assignment of that epoch if there is none yet; and it brings the member nearer to the target.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.timeouts import Timeouts
from kview.simulate.groups.consumer_checks import check_epoch
from kview.simulate.groups.consumer_group import (
    AWAY_EPOCH,
    LEFT_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    wanted_assignor,
)
from kview.simulate.groups.consumer_records import (
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberMetadata,
    MemberState,
    OwnedPartitions,
    Partitions,
    RegexKey,
    RegexValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from kview.simulate.groups.consumer_results import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    HeartbeatDone,
    Refused,
)
from kview.simulate.groups.conversion import check_upgrade, downgraded, may_downgrade, upgrade
from kview.simulate.groups.group import Group
from kview.simulate.groups.membership import Membership
from kview.simulate.groups.reconciliation import Target, next_assignment
from kview.simulate.groups.records import Change
from kview.simulate.groups.regexes import Matches, check_regex
from kview.simulate.groups.server_assignors import ASSIGNORS
from kview.simulate.groups.shard import RETRY_MS, GroupShard, next_epoch
from kview.simulate.groups.subscriptions import MetadataHashes, Subscriptions, topics_after

REGEX_REFRESH_MIN_MS = 10_000
"""Shortest time between two rounds in which the topics of a group's regular expressions are found."""


MayDescribe = Callable[[str], bool] | None


class Kind(StrEnum):
    """What a time-out of a member is about. Only members of the classic protocol join and sync."""

    SESSION = "session"
    REBALANCE = "rebalance"
    JOIN = "join"
    SYNC = "sync"


TimeoutKey = tuple[Kind, str, str]
"""(kind, group, member id)"""


class RegexChange(IntEnum):
    """Whether a member's regular expression changes, and whether its topics are known already."""

    NONE = 0
    CHANGED = 1
    RESOLVED = 2


class Draft:
    """What a request changes in a group: nothing is in force until it is written.

    `member` is the member as it is known, `metadata` what it says about itself now, and `replaces` the static
    member whose place it takes.
    """

    def __init__(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        metadata: MemberMetadata,
        replaces: ConsumerMember | None = None,
    ) -> None:
        self.group = group
        self.member = member
        self.metadata = metadata
        self.replaces = replaces
        self.changes: list[Change] = []
        self.epoch = group.epoch
        self.current = member.current
        self.subscription_changed = False
        self.topics = group.topics_checked
        if replaces is not None:
            target = TargetValue(group.targets.get(replaces.member_id, {}))
            self.changes += removal(group, replaces)
            self.changes += [
                (MemberKey(group.name, member.member_id), member.metadata),
                (TargetKey(group.name, member.member_id), target),
                (CurrentKey(group.name, member.member_id), member.current),
            ]


class ConsumerMembership:
    """Handles the members of one shard's consumer groups."""

    def __init__(self, shard: GroupShard, classic: Membership) -> None:
        self._shard = shard
        self._classic = classic
        self.timeouts: Timeouts[TimeoutKey] = Timeouts(shard)
        self._matches = Matches()
        self._hashes = MetadataHashes()
        self._topics_offset = -1

    def topics_created(self) -> None:
        """React to new topics, which regular expressions may match."""
        self._topics_offset = self._shard.host.metadata().offset

    # --- heartbeats

    def heartbeat(self, request: ConsumerHeartbeat, done: HeartbeatDone) -> None:
        """Handle a heartbeat that has passed `check`, and answer when its changes are committed.

        Raises Refused.
        """
        if request.member_epoch in (LEFT_EPOCH, AWAY_EPOCH):
            self._leave(request, done)
            return
        joins = request.member_epoch == 0
        known = self._shard.groups.get(request.group)
        group, converting = self._group(request.group, joins)
        self.check_size(group, request.member_id)
        draft = self._draft(group, request)
        draft.changes[:0] = converting
        self.update(draft)
        self.reconcile(draft, *self.retarget(draft), request.owned)
        before, after = draft.member.current, draft.current
        full = joins or (
            request.rebalance_timeout_ms != -1
            and (request.topics is not None or request.regex is not None)
            and request.owned is not None
        )
        member_id = draft.member.member_id
        result = ConsumerHeartbeatResult(
            ErrorCode.NONE,
            None,
            member_id,
            after.epoch,
            self._shard.group_setting(group.name, "consumer.heartbeat.interval.ms"),
            after.assigned if full or after.assigned != before.assigned else None,
        )

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else ConsumerHeartbeatResult(code))

        if self.write(draft, written):
            if isinstance(known, Group):
                self._converted(known, group)
            self.start_session(group, member_id)
            self._watch_revocation(group, draft)
            self._refresh_regexes(group, request.may_describe)

    def write(self, draft: Draft, written: Callable[[ErrorCode], None]) -> bool:
        """Write a draft, and call `written` when it is committed. Return whether it is in the log."""
        group, replaces = draft.group, draft.replaces
        if not self._shard.change_group(group, draft.changes, written):
            return False
        group.topics_checked = draft.topics
        if replaces is not None and replaces.member_id != draft.member.member_id:
            self.forget(group.name, replaces.member_id)
        return True

    def _group(self, name: str, creates: bool) -> tuple[ConsumerGroup, list[Change]]:
        """Return the group, and the changes that make it one of the consumer protocol. Raises Refused."""
        group = self._shard.groups.get(name)
        if isinstance(group, ConsumerGroup):
            return group, []
        first = self._shard.settings.consumer_first_epoch
        if group is None and creates:
            return ConsumerGroup(name, epoch=first, target_epoch=first), []
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {name} not found.")
        if not creates or not isinstance(group, Group):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a consumer group.")
        if group.empty:
            new = ConsumerGroup(name, group.offsets, epoch=first, target_epoch=first)
            return new, list(group.tombstones())
        check_upgrade(group, self._shard.settings)
        metadata = self._shard.host.metadata()
        upgraded = upgrade(group, metadata.topics)
        upgraded.metadata_hash = self._hashes.of(upgraded.topic_counts, metadata)
        return upgraded, [*group.tombstones(), *upgraded.changes()]

    def _converted(self, known: Group, group: ConsumerGroup) -> None:
        """Let the members of a classic group go on as members of `group`, which has taken its place."""
        self._classic.retire(known)
        for member in list(group.classic_members()):
            self.start_session(group, member.member_id)

    def check_size(self, group: ConsumerGroup, member_id: str) -> None:
        """Check that another member may join. Raises Refused."""
        most = self._shard.settings.consumer_max_size
        if len(group.members) >= most and member_id not in group.members:
            message = f"The consumer group has reached its maximum capacity of {most} members."
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    def _draft(self, group: ConsumerGroup, request: ConsumerHeartbeat) -> Draft:
        member_id = request.member_id or self._shard.host.random_uuid()
        joins, instance = request.member_epoch == 0, request.instance_id
        replaces = None
        if instance is None:
            member = group.members.get(member_id)
            if member is None and not joins:
                raise _not_a_member(group, member_id)
            member = member or ConsumerMember(member_id)
            check_epoch(member, request)
        elif joins:
            member, replaces = joining_static(group, member_id, instance, classic=False)
        else:
            member = known_static(group, member_id, instance)
            check_epoch(member, request)
        known = member.metadata
        metadata = MemberMetadata(
            known.instance_id if instance is None else instance,
            known.rack_id if request.rack_id is None else request.rack_id,
            request.client_id,
            request.client_host,
            known.topics if request.topics is None else tuple(sorted(set(request.topics))),
            known.regex if request.regex is None else request.regex,
            known.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms,
            known.assignor if request.assignor is None else request.assignor,
        )
        return Draft(group, member, metadata, replaces)

    # --- the three steps

    def update(self, draft: Draft) -> None:
        """Note what a member says about itself, and raise the group's epoch if the subscription changes.

        Raises Refused if its regular expression is not valid.
        """
        group, before, after = draft.group, draft.member.metadata, draft.metadata
        metadata = self._shard.host.metadata()
        is_known = draft.member.member_id in group.members or draft.replaces is not None
        if before != after or not is_known:
            draft.changes.append((MemberKey(group.name, draft.member.member_id), after))
        regex = self._update_regex(draft)
        names_changed = before.topics != after.topics
        draft.subscription_changed = names_changed or regex is not RegexChange.NONE
        raises = names_changed or regex is RegexChange.RESOLVED
        number = self._shard.topics_number
        if raises or group.topics_checked != number:
            topics = topics_after(group, [before] if is_known else [], [after])
            hashed = self._hashes.of(topics, metadata)
            if raises or hashed != group.metadata_hash:
                draft.epoch = next_epoch(group)
                draft.changes.append((EpochKey(group.name), EpochValue(draft.epoch, hashed)))
            draft.topics = number

    def _update_regex(self, draft: Draft) -> RegexChange:
        """Note a changed regular expression, and have the topics of the group's expressions found."""
        group, before, after = draft.group, draft.member.metadata.regex, draft.metadata.regex
        change = RegexChange.NONE
        if before != after:
            change = RegexChange.RESOLVED
            if before and group.regex_counts.get(before) == 1:
                draft.changes.append((RegexKey(group.name, before), None))
            if after and after not in group.regex_counts:
                check_regex(after)
            if after and after not in group.regexes:
                change = RegexChange.CHANGED
        return change

    def _refresh_regexes(self, group: ConsumerGroup, may_describe: MayDescribe) -> None:
        """Find the topics of a group's regular expressions again, if one is new, or topics are, or it is
        time to.

        As in Kafka, the expressions match what the client may describe whose heartbeat comes just then.
        """
        if group.resolving or not group.regex_counts:
            return
        now_ms, interval_ms = self._shard.now_ms, self._shard.settings.consumer_regex_refresh_interval_ms
        last_ms = min((regex.resolved_ms for regex in group.regexes.values()), default=None)
        if group.not_resolved_ms is not None and group.not_resolved_ms + REGEX_REFRESH_MIN_MS > now_ms:
            return
        if last_ms is not None:
            unresolved = len(group.regexes) != len(group.regex_counts)
            outdated = min(regex.offset for regex in group.regexes.values()) < self._topics_offset
            due = unresolved or outdated or last_ms + interval_ms <= now_ms
            if not due or last_ms + REGEX_REFRESH_MIN_MS > now_ms:
                return
        group.resolving = True
        self._shard.after(0, lambda: self._resolve(group, may_describe))

    def _resolve(self, group: ConsumerGroup, may_describe: MayDescribe) -> None:
        """Find the topics of a group's regular expressions. If they change, the group gets a new epoch."""
        group.resolving = False
        if self._shard.groups.get(group.name) is not group:
            return
        metadata, changes, changed = self._shard.host.metadata(), list[Change](), False
        topics = set(group.topic_counts)
        for pattern in group.regex_counts:
            matched = self._matches.of(pattern, metadata.topic_names)
            if may_describe is not None:
                matched = frozenset(filter(may_describe, matched))
            known = group.regexes.get(pattern)
            changed = changed or matched != (frozenset() if known is None else known.topics)
            value = RegexValue(matched, metadata.offset, self._shard.now_ms)
            changes.append((RegexKey(group.name, pattern), value))
            topics |= matched
        hashed = self._hashes.of(topics, metadata)
        if changed or hashed != group.metadata_hash:
            changes.append((EpochKey(group.name), EpochValue(next_epoch(group), hashed)))
        if self._shard.change_group(group, changes, lambda code: None):
            group.topics_checked, group.not_resolved_ms = self._shard.topics_number, None
        else:
            group.not_resolved_ms = self._shard.now_ms

    def retarget(self, draft: Draft) -> tuple[int, Partitions]:
        """Return the epoch of the target assignment and the member's part of it, after calculating it if the
        group's epoch is a new one.

        The group gets a new target assignment only group.consumer.assignment.interval.ms after the last one.
        """
        group, shard = draft.group, self._shard
        early = shard.assigned_lately(group, "consumer.assignment.interval.ms")
        if draft.epoch <= group.target_epoch or early:
            instance = draft.metadata.instance_id
            return group.target_epoch, group.target_of(draft.member.member_id, instance)
        subscriptions = Subscriptions(group, shard.host.metadata().topics)
        metadata = {known.member_id: known.metadata for known in group.members.values()}
        before = dict(group.targets)
        if draft.replaces is not None:
            del metadata[draft.replaces.member_id]
            before[draft.member.member_id] = before.pop(draft.replaces.member_id, {})
        metadata[draft.member.member_id] = draft.metadata
        members = {member_id: subscriptions.subscriber(known) for member_id, known in metadata.items()}
        targets = ASSIGNORS[wanted_assignor(metadata.values(), shard.settings.consumer_assignors)](
            members, subscriptions.partitions(), before
        )
        for member_id in metadata:
            partitions = targets.get(member_id, {})
            if partitions != before.get(member_id):
                draft.changes.append((TargetKey(group.name, member_id), TargetValue(partitions)))
        draft.changes.append((TargetEpochKey(group.name), TargetEpochValue(draft.epoch, shard.now_ms)))
        return draft.epoch, targets.get(draft.member.member_id, {})

    def reconcile(self, draft: Draft, epoch: int, partitions: Partitions, owned: Partitions | None) -> None:
        """Bring the member nearer to its part of the target assignment of this epoch."""
        group, member, changed = draft.group, draft.member, draft.subscription_changed
        if member.reconciled_to(epoch) and not changed:
            return
        subscribed = Subscriptions(group, self._shard.host.metadata().topics).of(draft.metadata)
        holder = member.member_id if draft.replaces is None else draft.replaces.member_id

        def taken(topic: bytes, partition: int) -> bool:
            return group.owners.get((topic, partition), holder) != holder

        target = Target(epoch, partitions, subscribed)
        draft.current = next_assignment(member.current, target, owned, changed, taken)
        if draft.current != member.current:
            draft.changes.append((CurrentKey(group.name, member.member_id), draft.current))

    # --- leaving

    def _leave(self, request: ConsumerHeartbeat, done: HeartbeatDone) -> None:
        group = self._shard.groups.get(request.group)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group} not found.")
        if not isinstance(group, ConsumerGroup):
            message = f"Group {request.group} is not a consumer group."
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)
        if request.instance_id is None:
            member = group.members.get(request.member_id)
            if member is None:
                raise _not_a_member(group, request.member_id)
        else:
            member = known_static(group, request.member_id, request.instance_id)
        result = ConsumerHeartbeatResult(
            ErrorCode.NONE, member_id=request.member_id, member_epoch=request.member_epoch
        )

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else ConsumerHeartbeatResult(code))

        if request.instance_id is not None and request.member_epoch == AWAY_EPOCH:
            current = member.current
            away = current._replace(epoch=AWAY_EPOCH, assigned=_without_epochs(current.assigned), revoking={})
            changes = [(CurrentKey(group.name, member.member_id), away)]
            if self._shard.change_group(group, changes, written):
                self.timeouts.cancel((Kind.REBALANCE, group.name, member.member_id))
            return
        self.remove(group, [member], written)

    def remove(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        written: Callable[[ErrorCode], None] = lambda code: None,
    ) -> bool:
        """Remove members from a group, which gets a new epoch. Return whether that is in the log.

        If the others all use the classic protocol, it becomes a classic group instead.
        """
        if members and may_downgrade(group, members, self._shard.settings):
            after = downgraded(group, members, None, self._shard)
            return self.downgrade(group, after, written, rebalances=True)
        changes: list[Change] = []
        for member in members:
            changes += removal(group, member)
        gone = Counter(member.metadata.regex for member in members)
        changes += [
            (RegexKey(group.name, pattern), None)
            for pattern, count in group.regex_counts.items()
            if count == gone[pattern]
        ]
        topics = topics_after(group, [member.metadata for member in members], [])
        hashed = self._hashes.of(topics, self._shard.host.metadata())
        changes.append((EpochKey(group.name), EpochValue(next_epoch(group), hashed)))
        if not self._shard.change_group(group, changes, written):
            return False
        for member in members:
            self.forget(group.name, member.member_id)
        return True

    def downgrade(
        self,
        group: ConsumerGroup,
        after: Group,
        written: Callable[[ErrorCode], None],
        rebalances: bool,
    ) -> bool:
        """Put a classic group in the place of a consumer group, and return whether the log took that."""

        def apply() -> None:
            self._shard.groups[group.name] = after

        if not self._shard.change([*group.tombstones(), *after.changes()], apply, written):
            return False
        for member_id in group.members:
            self.forget(group.name, member_id)
        self._classic.adopt(after, rebalances)
        return True

    # --- time-outs

    def start_sessions(self) -> None:
        """Start the time-outs of the loaded groups' members."""
        for group in self._shard.consumer_groups():
            for member in group.members.values():
                self.start_session(group, member.member_id)
                if member.current.state is MemberState.UNREVOKED_PARTITIONS:
                    self._start_revocation(group, member.member_id, member.metadata, member.current)

    def forget(self, group: str, member_id: str) -> None:
        """Cancel the time-outs of a member."""
        for kind in Kind:
            self.timeouts.cancel((kind, group, member_id))

    def hold(self, group: str, member_id: str, longer_us: int) -> None:
        """Let the time-outs of a member end later."""
        for kind in Kind:
            self.timeouts.hold((kind, group, member_id), longer_us)

    def start_session(self, group: ConsumerGroup, member_id: str) -> None:
        """Restart a member's session, whose length a member of the classic protocol chooses itself."""
        classic = group.members[member_id].metadata.classic
        if classic is None:
            timeout_ms = self._shard.group_setting(group.name, "consumer.session.timeout.ms")
        else:
            timeout_ms = classic.session_timeout_ms
        self.watch(Kind.SESSION, group, member_id, timeout_ms)

    def watch(
        self,
        kind: Kind,
        group: ConsumerGroup,
        member_id: str,
        delay_ms: int,
        if_in: Callable[[ConsumerMember], bool] = lambda member: True,
    ) -> None:
        """Remove a member after `delay_ms`, unless the time-out is cancelled or started again by then.

        At that time, the member must be one that `if_in` accepts. If the log takes no changes then, it is
        tried again.
        """

        def ended() -> None:
            known = self._shard.groups.get(group.name)
            member = known.members.get(member_id) if isinstance(known, ConsumerGroup) else None
            if not isinstance(known, ConsumerGroup) or not isinstance(member, ConsumerMember):
                return
            if if_in(member) and not self.remove(known, [member]):
                self.watch(kind, known, member_id, RETRY_MS, if_in)

        self.timeouts.start((kind, group.name, member_id), delay_ms, ended)

    def watch_if_absent(self, kind: Kind, group: ConsumerGroup, member_id: str, delay_ms: int) -> None:
        """Do the same unless such a time-out is running."""
        if not self.timeouts.running((kind, group.name, member_id)):
            self.watch(kind, group, member_id, delay_ms)

    def _watch_revocation(self, group: ConsumerGroup, draft: Draft) -> None:
        """Remove the member if it does not revoke its partitions within its rebalance timeout."""
        current, member_id = draft.current, draft.member.member_id
        if current == draft.member.current:
            return
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            self._start_revocation(group, member_id, draft.metadata, current)
        else:
            self.timeouts.cancel((Kind.REBALANCE, group.name, member_id))

    def _start_revocation(
        self, group: ConsumerGroup, member_id: str, metadata: MemberMetadata, current: CurrentValue
    ) -> None:
        def is_in_that_epoch(member: ConsumerMember) -> bool:
            return member.current.epoch == current.epoch

        timeout_ms = metadata.rebalance_timeout_ms
        self.watch(Kind.REBALANCE, group, member_id, timeout_ms, is_in_that_epoch)


def removal(group: ConsumerGroup, member: ConsumerMember) -> list[Change]:
    """Return the changes that remove a member."""
    name, member_id = group.name, member.member_id
    return [
        (CurrentKey(name, member_id), None),
        (TargetKey(name, member_id), None),
        (MemberKey(name, member_id), None),
    ]


def replacement(known: ConsumerMember, member_id: str) -> ConsumerMember:
    """Return a static member under the new id with which it has come back."""
    return known._replace(member_id=member_id, current=known.current._replace(epoch=0, previous_epoch=0))


def joining_static(
    group: ConsumerGroup, member_id: str, instance: str, classic: bool
) -> tuple[ConsumerMember, ConsumerMember | None]:
    """Return a static member that joins, and the one that it replaces, if there is one.

    Raises Refused while the other member is there, unless one of the two is `classic`: members of the classic
    protocol do not say that they will come back.
    """
    known = group.static_member(instance)
    if known is None:
        return group.members.get(member_id, ConsumerMember(member_id)), None
    if known.current.epoch != AWAY_EPOCH and known.metadata.classic is None and not classic:
        message = (
            f"Static member {member_id} with instance id {instance} cannot join the group because the "
            f"instance id is owned by {known.member_id} member."
        )
        raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    return replacement(known, member_id), known


def known_static(group: ConsumerGroup, member_id: str, instance: str) -> ConsumerMember:
    """Return the static member that has this instance id and this member id. Raises Refused."""
    member = group.static_member(instance)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance} is unknown.")
    if member.member_id != member_id:
        message = (
            f"Static member {member_id} with instance id {instance} was fenced by member {member.member_id}."
        )
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, message)
    return member


def _not_a_member(group: ConsumerGroup, member_id: str) -> Refused:
    message = f"Member {member_id} is not a member of group {group.name}."
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, message)


def _without_epochs(owned: OwnedPartitions) -> OwnedPartitions:
    return {topic: dict.fromkeys(partitions, 0) for topic, partitions in owned.items()}
