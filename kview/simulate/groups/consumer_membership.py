"""How members of consumer groups join, stay and leave. Source: Kafka's GroupMetadataManager.

A heartbeat does it all: it changes a member's subscription, which raises the group's epoch; it calculates the
target assignment of that epoch if there is none yet; and it brings the member nearer to the target.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.timeouts import Timeouts
from kview.simulate.groups.consumer_group import AWAY_EPOCH, LEFT_EPOCH, ConsumerGroup, ConsumerMember
from kview.simulate.groups.consumer_records import (
    ConsumerChange,
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
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from kview.simulate.groups.consumer_results import (
    CLIENT_MADE_IDS_FROM,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    HeartbeatDone,
    Refused,
)
from kview.simulate.groups.reconciliation import Target, next_assignment
from kview.simulate.groups.server_assignors import ASSIGNORS
from kview.simulate.groups.shard import GroupShard
from kview.simulate.groups.subscriptions import Subscriptions, metadata_hash, topics_after

EPOCH_MAX = 2**31 - 1
"""Limit of an epoch, which is an int32."""


class Kind(StrEnum):
    """What a time-out of a member is about."""

    SESSION = "session"
    REBALANCE = "rebalance"


TimeoutKey = tuple[Kind, str, str]
"""(kind, group, member id)"""


class Draft:
    """What a request changes in a group: nothing is in force until it is written.

    `member` is the member as it is known, `metadata` what it says about itself now.
    """

    def __init__(self, group: ConsumerGroup, member: ConsumerMember, metadata: MemberMetadata) -> None:
        self.group = group
        self.member = member
        self.metadata = metadata
        self.changes: list[ConsumerChange] = []
        self.epoch = group.epoch
        self.current = member.current
        self.replaces: ConsumerMember | None = None
        """The static member whose place the member takes."""


class ConsumerMembership:
    """Handles the members of one shard's consumer groups."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self._timeouts: Timeouts[TimeoutKey] = Timeouts(shard)

    # --- heartbeats

    def heartbeat(self, request: ConsumerHeartbeat, done: HeartbeatDone) -> None:
        """Handle a heartbeat, and answer when its changes are committed. Raises Refused.

        The request has passed `check`."""
        if request.member_epoch in (LEFT_EPOCH, AWAY_EPOCH):
            self._leave(request, done)
            return
        joins = request.member_epoch == 0
        group = self._group(request.group, joins)
        self._check_size(group, request.member_id)
        draft = self._draft(group, request)
        self.update(draft)
        target = self.retarget(draft)
        self.reconcile(draft, target, request.owned)
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
            self._shard.settings.consumer_heartbeat_interval_ms,
            after.assigned if full or after.assigned != before.assigned else None,
        )
        if self._write(group, draft.changes, done, result):
            self._start_session(group, member_id)
            self._watch_revocation(group, draft)

    def _write(
        self,
        group: ConsumerGroup,
        changes: Sequence[ConsumerChange],
        done: HeartbeatDone,
        result: ConsumerHeartbeatResult,
    ) -> bool:
        """Write the changes, and answer when they are committed. Return whether they are in the log."""

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else ConsumerHeartbeatResult(code))

        return self._shard.change(group, changes, written)

    def _group(self, name: str, creates: bool) -> ConsumerGroup:
        group = self._shard.groups.get(name)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            if not creates:
                raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {name} not found.")
            return ConsumerGroup(name)
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a consumer group.")

    def _check_size(self, group: ConsumerGroup, member_id: str) -> None:
        most = self._shard.settings.consumer_max_size
        if len(group.members) >= most and member_id not in group.members:
            message = f"The consumer group has reached its maximum capacity of {most} members."
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    def _draft(self, group: ConsumerGroup, request: ConsumerHeartbeat) -> Draft:
        member_id = request.member_id or self._shard.host.random_id()
        joins, instance = request.member_epoch == 0, request.instance_id
        replaces = None
        if instance is None:
            member = group.members.get(member_id)
            if member is None and not joins:
                raise _not_a_member(group, member_id)
            member = member or ConsumerMember(member_id)
            _check_epoch(member, request)
        elif joins:
            member, replaces = self._joining_static(group, member_id, instance)
        else:
            member = known_static(group, member_id, instance)
            _check_epoch(member, request)
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
        return self.draft(group, member, metadata, replaces)

    def _joining_static(
        self, group: ConsumerGroup, member_id: str, instance: str
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """Return a static member that joins, and the one that it replaces, if it does."""
        known = group.static_member(instance)
        if known is None:
            return group.members.get(member_id, ConsumerMember(member_id)), None
        if known.current.epoch != AWAY_EPOCH and known.metadata.classic is None:
            message = (
                f"Static member {member_id} with instance id {instance} cannot join the group because the "
                f"instance id is owned by {known.member_id} member."
            )
            raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        return replacement(known, member_id), known

    def draft(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        metadata: MemberMetadata,
        replaces: ConsumerMember | None,
    ) -> Draft:
        """Return a draft of a member's change. It takes over what the member that it replaces has."""
        draft = Draft(group, member, metadata)
        if replaces is not None:
            draft.replaces = replaces
            draft.changes += removal(group, replaces)
            draft.changes += [
                (MemberKey(group.name, member.member_id), member.metadata),
                (
                    TargetKey(group.name, member.member_id),
                    TargetValue(group.targets.get(replaces.member_id, {})),
                ),
                (CurrentKey(group.name, member.member_id), member.current),
            ]
        return draft

    # --- the three steps

    def update(self, draft: Draft) -> None:
        """Note what a member says about itself, and raise the group's epoch if the subscription changes."""
        group, before, after = draft.group, draft.member.metadata, draft.metadata
        topics = self._shard.host.metadata().topics
        is_known = draft.member.member_id in group.members or draft.replaces is not None
        changes = before.topics != after.topics
        if before != after or not is_known:
            draft.changes.append((MemberKey(group.name, draft.member.member_id), after))
        if changes or group.topics_checked is not topics:
            counted = before if is_known else None
            hashed = metadata_hash(topics_after(group, counted, after), topics)
            if changes or hashed != group.metadata_hash:
                draft.epoch = next_epoch(group)
                draft.changes.append((EpochKey(group.name), EpochValue(draft.epoch, hashed)))
            group.topics_checked = topics

    def retarget(self, draft: Draft) -> Target:
        """Return what the member is to have, after calculating it if the group's epoch is a new one.

        The group gets a new target assignment only group.consumer.assignment.interval.ms after the last one.
        """
        group, shard = draft.group, self._shard
        subscriptions = Subscriptions(group, shard.host.metadata().topics)
        subscribed = subscriptions.of(draft.metadata)
        interval_ms = shard.settings.consumer_assignment_interval_ms
        last_ms = group.target_calculated_ms
        early = last_ms and interval_ms and shard.now_ms < last_ms + interval_ms
        if draft.epoch <= group.target_epoch or early:
            instance = draft.metadata.instance_id
            partitions = group.target_of(draft.member.member_id, instance)
            return Target(group.target_epoch, partitions, subscribed)
        metadata = {known.member_id: known.metadata for known in group.members.values()}
        before = dict(group.targets)
        if draft.replaces is not None:
            del metadata[draft.replaces.member_id]
            before[draft.member.member_id] = before.pop(draft.replaces.member_id, {})
        metadata[draft.member.member_id] = draft.metadata
        members = {member_id: subscriptions.subscriber(known) for member_id, known in metadata.items()}
        targets = ASSIGNORS[self._assignor(metadata.values())](members, subscriptions.partitions(), before)
        for member_id in metadata:
            partitions = targets.get(member_id, {})
            if partitions != before.get(member_id):
                draft.changes.append((TargetKey(group.name, member_id), TargetValue(partitions)))
        draft.changes.append((TargetEpochKey(group.name), TargetEpochValue(draft.epoch, shard.now_ms)))
        return Target(draft.epoch, targets.get(draft.member.member_id, {}), subscribed)

    def _assignor(self, members: Iterable[MemberMetadata]) -> str:
        """Return the assignor that most members want, else the default."""
        votes: dict[str, int] = {}
        for metadata in members:
            if metadata.assignor is not None:
                votes[metadata.assignor] = votes.get(metadata.assignor, 0) + 1
        return max(votes, key=lambda name: votes[name], default=next(iter(ASSIGNORS)))

    def reconcile(self, draft: Draft, target: Target, owned: Partitions | None) -> None:
        """Bring the member nearer to its target."""
        group, member = draft.group, draft.member
        before, after = member.metadata, draft.metadata
        changed = (before.topics, before.regex) != (after.topics, after.regex)
        holder = member.member_id if draft.replaces is None else draft.replaces.member_id

        def taken(topic: bytes, partition: int) -> bool:
            return group.owners.get((topic, partition), holder) != holder

        draft.current = next_assignment(member.current, target, owned, changed, taken)
        if draft.current != member.current:
            draft.changes.append((CurrentKey(group.name, member.member_id), draft.current))

    # --- leaving

    def _leave(self, request: ConsumerHeartbeat, done: HeartbeatDone) -> None:
        group = self._shard.groups.get(request.group)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group} not found.")
        if not isinstance(group, ConsumerGroup):
            message = f"Group {request.group} is not a consumer group"
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
        if request.instance_id is not None and request.member_epoch == AWAY_EPOCH:
            current = member.current
            away = current._replace(epoch=AWAY_EPOCH, assigned=_without_epochs(current.assigned), revoking={})
            changes = [(CurrentKey(group.name, member.member_id), away)]
            if self._write(group, changes, done, result):
                self._timeouts.cancel((Kind.REBALANCE, group.name, member.member_id))
            return

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else ConsumerHeartbeatResult(code))

        self.remove(group, [member], written)

    def remove(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        written: Callable[[ErrorCode], None] = lambda code: None,
    ) -> None:
        """Remove members from a group, which gets a new epoch."""
        changes: list[ConsumerChange] = []
        names, patterns = dict(group.topic_counts), dict(group.regex_counts)
        for member in members:
            changes += removal(group, member)
            for topic in member.metadata.topics:
                names[topic] -= 1
            if member.metadata.regex:
                patterns[member.metadata.regex] -= 1
        topics = {topic for topic, count in names.items() if count}
        for pattern, count in patterns.items():
            if not count:
                changes.append((RegexKey(group.name, pattern), None))
            elif pattern in group.regexes:
                topics |= group.regexes[pattern].topics
        hashed = metadata_hash(topics, self._shard.host.metadata().topics)
        changes.append((EpochKey(group.name), EpochValue(next_epoch(group), hashed)))
        if self._shard.change(group, changes, written):
            for member in members:
                self.forget(group.name, member.member_id)

    # --- time-outs

    def start_sessions(self) -> None:
        """Start the time-outs of the loaded groups' members."""
        for group in self._shard.consumer_groups():
            for member in group.members.values():
                self._start_session(group, member.member_id)
                if member.current.state is MemberState.UNREVOKED_PARTITIONS:
                    self._start_revocation(group, member.member_id, member.metadata, member.current)

    def forget(self, group: str, member_id: str) -> None:
        """Cancel the time-outs of a member."""
        for kind in Kind:
            self._timeouts.cancel((kind, group, member_id))

    def _start_session(self, group: ConsumerGroup, member_id: str) -> None:
        key = Kind.SESSION, group.name, member_id
        timeout_ms = self._shard.settings.consumer_session_timeout_ms
        self._timeouts.start(key, timeout_ms, lambda: self._expired(group.name, member_id))

    def _expired(self, name: str, member_id: str) -> None:
        group = self._shard.groups.get(name)
        if isinstance(group, ConsumerGroup) and member_id in group.members:
            self.remove(group, [group.members[member_id]])

    def _watch_revocation(self, group: ConsumerGroup, draft: Draft) -> None:
        """Remove the member if it does not revoke its partitions within its rebalance timeout."""
        current, member_id = draft.current, draft.member.member_id
        if current == draft.member.current:
            return
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            self._start_revocation(group, member_id, draft.metadata, current)
        else:
            self._timeouts.cancel((Kind.REBALANCE, group.name, member_id))

    def _start_revocation(
        self, group: ConsumerGroup, member_id: str, metadata: MemberMetadata, current: CurrentValue
    ) -> None:
        def ended() -> None:
            known = self._shard.groups.get(group.name)
            if isinstance(known, ConsumerGroup) and member_id in known.members:
                member = known.members[member_id]
                if member.current.epoch == current.epoch:
                    self.remove(known, [member])

        self._timeouts.start((Kind.REBALANCE, group.name, member_id), metadata.rebalance_timeout_ms, ended)


def next_epoch(group: ConsumerGroup) -> int:
    """Return the epoch after a group's present one."""
    return min(group.epoch + 1, EPOCH_MAX)


def removal(group: ConsumerGroup, member: ConsumerMember) -> list[ConsumerChange]:
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


def check(request: ConsumerHeartbeat) -> None:
    """Check a request by itself. Raises Refused."""
    epoch = request.member_epoch
    if request.version >= CLIENT_MADE_IDS_FROM or epoch > 0 or epoch == LEFT_EPOCH:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    wrong = None
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            wrong = "RebalanceTimeoutMs must be provided in first request."
        elif request.owned is None or request.owned:
            wrong = "TopicPartitions must be empty when (re-)joining."
        elif request.topics is None and request.regex is None:
            wrong = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == AWAY_EPOCH and request.instance_id is None:
        wrong = "InstanceId can't be null."
    elif epoch < AWAY_EPOCH:
        wrong = "MemberEpoch is invalid."
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, wrong)
    if request.assignor is not None and request.assignor not in ASSIGNORS:
        message = (
            f"ServerAssignor {request.assignor} is not supported. "
            f"Supported assignors: {', '.join(ASSIGNORS)}."
        )
        raise Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise Refused(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def _check_epoch(member: ConsumerMember, request: ConsumerHeartbeat) -> None:
    """Check the epoch with which a member comes. Raises Refused."""
    epoch, known = request.member_epoch, member.current.epoch
    if epoch in (0, known):
        return
    previous = epoch == member.current.previous_epoch
    if epoch < known and previous and _is_part(request.owned, member.current.assigned):
        return  # The answer with the new epoch may have been lost.
    word = "greater" if epoch > known else "smaller"
    message = (
        f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin."
    )
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_part(owned: Partitions | None, assigned: OwnedPartitions) -> bool:
    if owned is None:
        return False
    return all(
        topic in assigned and assigned[topic].keys() >= partitions for topic, partitions in owned.items()
    )
