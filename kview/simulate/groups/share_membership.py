"""How members of share groups join, stay and leave. Source: Kafka's GroupMetadataManager.

A member is given only partitions that a share coordinator has begun with. A heartbeat asks for those that are
new, and a later one assigns them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.share_states import UNINITIALIZED, SharePartition, ShareStates
from kview.simulate.coordination.timeouts import Timeouts
from kview.simulate.groups.consumer_checks import TOPICS_MAX
from kview.simulate.groups.consumer_records import Partitions
from kview.simulate.groups.consumer_results import Refused
from kview.simulate.groups.records import Change
from kview.simulate.groups.shard import RETRY_MS, GroupShard, next_epoch
from kview.simulate.groups.share_group import LEFT_EPOCH, ShareGroup, ShareMember
from kview.simulate.groups.share_records import (
    NamedPartitions,
    ShareCurrentKey,
    ShareCurrentValue,
    ShareEpochKey,
    ShareEpochValue,
    ShareMemberKey,
    ShareMemberValue,
    ShareStatesKey,
    ShareStatesValue,
    ShareTargetEpochKey,
    ShareTargetEpochValue,
    ShareTargetKey,
    ShareTargetValue,
    StatePartitions,
)
from kview.simulate.groups.share_results import ShareHeartbeat, ShareHeartbeatDone, ShareHeartbeatResult
from kview.simulate.groups.simple_assignor import assign_simple
from kview.simulate.groups.subscriptions import MetadataHashes

MEMBER_ID_MAX = 36
"""Longest id of a member, in characters."""
INITIALIZE_RETRY_MS = 30_000
"""Time until a share coordinator that has not answered is asked again
(group.share.initialize.retry.interval.ms, which is internal)."""

NOTHING: Partitions = {}


def check(request: ShareHeartbeat) -> None:
    """Check a request by itself. Raises Refused."""
    wrong: str | None = ""
    if not 0 < len(request.member_id) <= MEMBER_ID_MAX:
        wrong = None
    elif not request.member_id.strip():
        wrong = "MemberId can't be empty."
    elif not request.group.strip():
        wrong = "GroupId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        wrong = "RackId can't be empty."
    elif request.member_epoch == 0 and not request.topics:
        wrong = "SubscribedTopicNames must be set in first request."
    elif request.member_epoch < LEFT_EPOCH:
        wrong = "MemberEpoch is invalid."
    if wrong != "":
        raise Refused(ErrorCode.INVALID_REQUEST, wrong)
    if len(request.topics or ()) > TOPICS_MAX:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"A member names more than {TOPICS_MAX} topics.")


class ShareMembership:
    """Handles the members of one shard's share groups."""

    def __init__(self, shard: GroupShard, states: ShareStates | None) -> None:
        self._shard = shard
        self._states = states
        self._sessions: Timeouts[tuple[str, str]] = Timeouts(shard)
        self._hashes = MetadataHashes()

    def start_sessions(self) -> None:
        """Start the sessions of the loaded groups' members."""
        for group in self._shard.share_groups():
            for member_id in group.members:
                self._start_session(group, member_id)

    def hold(self, group: str, member_id: str, longer_us: int) -> None:
        """Let the session of a member end later."""
        self._sessions.hold((group, member_id), longer_us)

    def forget_deleted_topics(self) -> None:
        """Write that groups no longer read topics that are gone."""
        names = self._shard.host.metadata().topic_names
        for group in list(self._shard.share_groups()):
            states = group.states
            kept = ShareStatesValue(
                {topic: named for topic, named in states.initializing.items() if topic in names},
                {topic: named for topic, named in states.initialized.items() if topic in names},
                {topic: name for topic, name in states.deleting.items() if topic in names},
            )
            if kept != states:
                self._shard.change_group(group, [(ShareStatesKey(group.name), kept)], lambda code: None)

    # --- heartbeats

    def heartbeat(self, request: ShareHeartbeat, done: ShareHeartbeatDone) -> None:
        """Handle a heartbeat that has passed `check`, and answer when its changes are committed.

        Raises Refused.
        """
        if request.member_epoch == LEFT_EPOCH:
            self._leave(request, done)
            return
        joins = request.member_epoch == 0
        group = self._group(request.group, joins)
        known = group.members.get(request.member_id)
        if known is None:
            self._check_new(group, request)
        member = known or ShareMember(request.member_id)
        _check_epoch(member, request)
        metadata = ShareMemberValue(
            member.metadata.rack_id if request.rack_id is None else request.rack_id,
            request.client_id,
            request.client_host,
            member.metadata.topics if request.topics is None else tuple(sorted(set(request.topics))),
        )
        changes: list[Change] = []
        if known is None or metadata != known.metadata:
            changes.append((ShareMemberKey(group.name, member.member_id), metadata))
        topics = self._topics_with(group, member.member_id, metadata)
        epoch = self._raise_epoch(group, known, metadata, topics, changes)
        target_epoch, assigned = self._retarget(group, epoch, member.member_id, metadata, changes)
        current = member.current
        if known is None or current.epoch != target_epoch:
            current = ShareCurrentValue(target_epoch, current.epoch, assigned)
            changes.append((ShareCurrentKey(group.name, member.member_id), current))
        wanted = self._uninitialized(group, topics)
        if wanted:
            states = group.states._replace(initializing=joined(group.states.initializing, wanted))
            changes.append((ShareStatesKey(group.name), states))
        result = ShareHeartbeatResult(
            ErrorCode.NONE,
            None,
            member.member_id,
            current.epoch,
            self._shard.group_setting(group.name, "share.heartbeat.interval.ms"),
            current.assigned if joins or current.assigned != member.current.assigned else None,
        )

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and wanted:
                self._initialize(group.name, epoch, wanted)
            done(result if code is ErrorCode.NONE else ShareHeartbeatResult(code))

        if self._shard.change_group(group, changes, written):
            for topic_id, named in wanted.items():
                for number in named.partitions:
                    group.asked_ms[topic_id, number] = self._shard.now_ms
            self._start_session(group, member.member_id)

    def _group(self, name: str, creates: bool) -> ShareGroup:
        group = self._shard.groups.get(name)
        if isinstance(group, ShareGroup):
            return group
        if group is not None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a share group.")
        if not creates:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {name} not found.")
        return ShareGroup(name)

    def _check_new(self, group: ShareGroup, request: ShareHeartbeat) -> None:
        if request.member_epoch != 0:
            raise _not_a_member(group, request.member_id)
        most = self._shard.settings.share_max_size
        if len(group.members) >= most:
            message = f"The share group has reached its maximum capacity of {most} members."
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    def _topics_with(self, group: ShareGroup, member_id: str, metadata: ShareMemberValue) -> set[str]:
        """Return the topics that the group reads when a member has said this about itself."""
        others = (m.metadata.topics for m in group.members.values() if m.member_id != member_id)
        return set(metadata.topics).union(*others)

    def _raise_epoch(
        self,
        group: ShareGroup,
        known: ShareMember | None,
        metadata: ShareMemberValue,
        topics: Collection[str],
        changes: list[Change],
    ) -> int:
        """Return the group's epoch, which is a new one if a subscription, a topic or the partitions that can
        be assigned have changed."""
        image = self._shard.host.metadata()
        subscribes = known is None or known.metadata.topics != metadata.topics
        if not subscribes and group.topics_checked == self._shard.topics_number:
            hashed = group.metadata_hash
        else:
            hashed = self._hashes.of(topics, image)
            group.topics_checked = self._shard.topics_number
        epoch = group.epoch
        pending = group.epoch == group.target_epoch and self._is_unassigned(group, topics)
        if subscribes or pending or hashed != group.metadata_hash:
            epoch = next_epoch(group)
            changes.append((ShareEpochKey(group.name), ShareEpochValue(epoch, hashed)))
        return epoch

    def _assignable(self, group: ShareGroup, topics: Iterable[str]) -> Partitions:
        """Return the partitions of these topics that share coordinators have begun with."""
        initialized, images = group.initialized(), self._shard.host.metadata().topics
        ids = (images[topic].topic_id for topic in topics if topic in images)
        return {topic_id: initialized[topic_id] for topic_id in ids if topic_id in initialized}

    def _is_unassigned(self, group: ShareGroup, topics: Iterable[str]) -> bool:
        """Return whether no member is to have a partition that could be assigned."""
        if not group.members:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in group.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        assignable = self._assignable(group, topics)
        return any(numbers - assigned.get(topic_id, set()) for topic_id, numbers in assignable.items())

    def _retarget(
        self,
        group: ShareGroup,
        epoch: int,
        member_id: str,
        metadata: ShareMemberValue,
        changes: list[Change],
    ) -> tuple[int, Partitions]:
        """Return the epoch of the target assignment and the member's part of it, after calculating it if the
        group's epoch is a new one, but only share.assignment.interval.ms after the last one."""
        shard = self._shard
        early = shard.assigned_lately(group, "share.assignment.interval.ms")
        if epoch <= group.target_epoch or early:
            return group.target_epoch, group.targets.get(member_id, NOTHING)
        images = shard.host.metadata().topics
        members = {known.member_id: known.metadata for known in group.members.values()}
        members[member_id] = metadata
        subscribed = {
            name: frozenset(images[topic].topic_id for topic in member.topics if topic in images)
            for name, member in members.items()
        }
        topics = {topic for member in members.values() for topic in member.topics}
        targets = assign_simple(subscribed, self._assignable(group, topics), group.targets)
        for name, partitions in targets.items():
            if partitions != group.targets.get(name):
                changes.append((ShareTargetKey(group.name, name), ShareTargetValue(partitions)))
        changes.append((ShareTargetEpochKey(group.name), ShareTargetEpochValue(epoch, shard.now_ms)))
        return epoch, targets[member_id]

    # --- partitions that share coordinators begin with

    def _uninitialized(self, group: ShareGroup, topics: Iterable[str]) -> StatePartitions:
        """Return the partitions that share coordinators have to be asked to begin with."""
        wanted: dict[bytes, NamedPartitions] = {}
        images, now_ms = self._shard.host.metadata().topics, self._shard.now_ms
        initialized, initializing = group.states.initialized, group.states.initializing
        for topic in sorted(topics):
            image = images.get(topic)
            if image is None:
                continue
            topic_id, count = image.topic_id, len(image.partitions)
            done = initialized.get(topic_id)
            if done is not None and len(done.partitions) == count:
                continue
            numbers = set(range(count)) - (done.partitions if done is not None else frozenset())
            begun = initializing[topic_id].partitions if topic_id in initializing else frozenset()
            for number in begun:
                asked_ms = group.asked_ms.get((topic_id, number))
                if asked_ms is not None and asked_ms + INITIALIZE_RETRY_MS > now_ms:
                    numbers.discard(number)
            if numbers:
                wanted[topic_id] = NamedPartitions(topic, frozenset(numbers))
        return wanted

    def _initialize(self, name: str, epoch: int, wanted: StatePartitions) -> None:
        """Ask the share coordinators to begin with partitions, and write which of them have."""
        keys = [
            SharePartition(name, topic_id, number)
            for topic_id, named in wanted.items()
            for number in sorted(named.partitions)
        ]
        codes: dict[SharePartition, ErrorCode] = {}

        def answered(key: SharePartition, code: ErrorCode, message: str | None) -> None:
            codes[key] = code
            if len(codes) == len(keys) and not self._shard.closed:
                self._initialized(name, wanted, codes)

        if self._states is None:
            return
        for key in keys:
            self._states.initialize(key, epoch, UNINITIALIZED, partial(answered, key))

    def _initialized(
        self, name: str, wanted: StatePartitions, codes: Mapping[SharePartition, ErrorCode]
    ) -> None:
        group = self._shard.groups.get(name)
        if not isinstance(group, ShareGroup):
            return
        begun: dict[bytes, NamedPartitions] = {}
        for key, code in codes.items():
            group.asked_ms.pop((key.topic_id, key.partition), None)
            if code is ErrorCode.NONE:
                before = begun.get(key.topic_id, NamedPartitions(wanted[key.topic_id].topic, frozenset()))
                begun[key.topic_id] = before._replace(partitions=before.partitions | {key.partition})
        self.note_initialized(group, wanted, begun, lambda code: None)

    def note_initialized(
        self,
        group: ShareGroup,
        asked: StatePartitions,
        begun: StatePartitions,
        written: Callable[[ErrorCode], None],
    ) -> None:
        """Write which of the partitions that were asked for share coordinators have begun with."""
        states = group.states._replace(
            initializing=without(group.states.initializing, asked),
            initialized=joined(group.states.initialized, begun),
        )
        self._shard.change_group(group, [(ShareStatesKey(group.name), states)], written)

    # --- leaving

    def _leave(self, request: ShareHeartbeat, done: ShareHeartbeatDone) -> None:
        group = self._shard.groups.get(request.group)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group} not found.")
        if not isinstance(group, ShareGroup):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group} is not a share group.")
        member = group.members.get(request.member_id)
        if member is None:
            raise _not_a_member(group, request.member_id)
        result = ShareHeartbeatResult(
            ErrorCode.NONE, member_id=request.member_id, member_epoch=request.member_epoch
        )

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else ShareHeartbeatResult(code))

        self._remove(group, member, written)

    def _remove(self, group: ShareGroup, member: ShareMember, written: Callable[[ErrorCode], None]) -> bool:
        """Remove a member from a group, which gets a new epoch. Return whether that is in the log."""
        name, member_id = group.name, member.member_id
        topics = self._topics_with(group, member_id, ShareMemberValue())
        hashed = self._hashes.of(topics, self._shard.host.metadata())
        changes: Sequence[Change] = [
            (ShareCurrentKey(name, member_id), None),
            (ShareTargetKey(name, member_id), None),
            (ShareMemberKey(name, member_id), None),
            (ShareEpochKey(name), ShareEpochValue(next_epoch(group), hashed)),
        ]
        if not self._shard.change_group(group, changes, written):
            return False
        self._sessions.cancel((name, member_id))
        return True

    def _start_session(self, group: ShareGroup, member_id: str) -> None:
        def ended() -> None:
            known = self._shard.groups.get(group.name)
            member = known.members.get(member_id) if isinstance(known, ShareGroup) else None
            if not isinstance(known, ShareGroup) or not isinstance(member, ShareMember):
                return
            if not self._remove(known, member, lambda code: None):
                self._sessions.start((group.name, member_id), RETRY_MS, ended)

        timeout_ms = self._shard.group_setting(group.name, "share.session.timeout.ms")
        self._sessions.start((group.name, member_id), timeout_ms, ended)


def _check_epoch(member: ShareMember, request: ShareHeartbeat) -> None:
    """Check the epoch with which a member comes. Raises Refused."""
    epoch, known, previous = request.member_epoch, member.current.epoch, member.current.previous_epoch
    if epoch in (0, known, previous):
        return
    word = "greater" if epoch > known else "smaller"
    message = (
        f"The share group member has a {word} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({known})"
    )
    if epoch < known:
        message += f", and it does not match the previous member epoch ({previous})"
    message += ". The member must abandon all its partitions and rejoin."
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _not_a_member(group: ShareGroup, member_id: str) -> Refused:
    message = f"Member {member_id} is not a member of group {group.name}."
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, message)


def joined(states: StatePartitions, more: StatePartitions) -> StatePartitions:
    """Return these partitions and some more."""
    after = dict(states)
    for topic_id, named in more.items():
        before = after[topic_id].partitions if topic_id in after else frozenset()
        after[topic_id] = NamedPartitions(named.topic, before | named.partitions)
    return after


def without(states: StatePartitions, gone: StatePartitions) -> StatePartitions:
    """Return these partitions without others, and without topics of which none is left."""
    left = {
        topic_id: named._replace(
            partitions=named.partitions - (gone[topic_id].partitions if topic_id in gone else frozenset())
        )
        for topic_id, named in states.items()
    }
    return {topic_id: named for topic_id, named in left.items() if named.partitions}
