"""How members of streams groups join, stay and leave (KIP-1071). Source: Kafka's GroupMetadataManager.

A heartbeat checks the topology with the topics that exist, raises the group's epoch if something changed,
assigns tasks in that epoch, and brings the member nearer to what it is to have.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.java_hashes import java_map_order
from kview.simulate.coordination.timeouts import Timeouts
from kview.simulate.groups.consumer_records import MemberState
from kview.simulate.groups.consumer_results import Refused
from kview.simulate.groups.group import Group
from kview.simulate.groups.reconciliation import Target, next_assignment
from kview.simulate.groups.records import Change
from kview.simulate.groups.shard import RETRY_MS, GroupShard, next_epoch
from kview.simulate.groups.streams_assignor import TaskCount, assign_sticky
from kview.simulate.groups.streams_group import (
    LEFT_EPOCH,
    Holders,
    StreamsGroup,
    StreamsMember,
)
from kview.simulate.groups.streams_records import (
    NO_TASKS,
    OwnedTasks,
    Role,
    StreamsCurrentKey,
    StreamsCurrentValue,
    StreamsEpochKey,
    StreamsEpochValue,
    StreamsMemberKey,
    StreamsMemberValue,
    StreamsTargetEpochKey,
    StreamsTargetEpochValue,
    StreamsTargetKey,
    StreamsTargetValue,
    Tasks,
    TopologyKey,
    TopologyValue,
)
from kview.simulate.groups.streams_results import (
    EndpointPartitions,
    StreamsHeartbeat,
    StreamsHeartbeatDone,
    StreamsHeartbeatResult,
)
from kview.simulate.groups.streams_topology import (
    Configured,
    Status,
    StatusCode,
    by_id,
    check_topology,
    configure,
    required_topics,
)
from kview.simulate.groups.subscriptions import MetadataHashes

AWAY_EPOCH = -2
"""The epoch of a static member that leaves for a while, which Kafka does not support yet."""
NUM_STANDBY_REPLICAS = "num.standby.replicas"
EARLY, DELAYED = (
    f"Assignment delayed due to the configured {what}."
    for what in ("assignment interval", "initial rebalance delay")
)


class Kind(StrEnum):
    """What a time-out is about: a member, or the group (with no member id) that waits for more members."""

    SESSION = "session"
    REBALANCE = "rebalance"
    INITIAL = "initial"


def check(request: StreamsHeartbeat) -> None:
    """Check a request by itself. Raises Refused."""
    epoch, wrong = request.member_epoch, request.wrong
    texts = {"MemberId": request.member_id, "GroupId": request.group, "RackId": request.rack_id}
    empty = [name for name, text in texts.items() if text is not None and not text.strip()]
    if wrong is None and empty:
        wrong = f"{empty[0]} can't be empty."
    if wrong is None and epoch == 0:
        roles = [role for role in Role if any(key.role is role for key in request.owned or ())]
        if request.rebalance_timeout_ms == -1:
            wrong = "RebalanceTimeoutMs must be provided in first request."
        elif roles:
            wrong = f"{roles[0].name.capitalize()}Tasks must be empty when (re-)joining."
        elif request.topology is None:
            wrong = "Topology must be non-null when (re-)joining."
        else:
            check_topology(request.topology)
    elif wrong is None and epoch == AWAY_EPOCH:
        wrong = "InstanceId can't be null."
    elif wrong is None and epoch < AWAY_EPOCH:
        wrong = f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
    if wrong is None and request.lacks_tasks:
        wrong = "If one task-type is non-null, all must be non-null."
    if wrong is None and epoch != 0 and request.topology is not None:
        wrong = "Topology can only be provided when (re-)joining."
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, wrong)


class StreamsMembership:
    """Handles the members of one shard's streams groups."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self._timeouts: Timeouts[tuple[Kind, str, str]] = Timeouts(shard)
        self._hashes = MetadataHashes()

    def start_sessions(self) -> None:
        """Start the time-outs of the loaded groups' members."""
        for group in self._shard.streams_groups():
            for member in group.members.values():
                self._start_session(group, member.member_id)
                self._watch_revocation(group, member)

    def hold(self, group: str, member_id: str, longer_us: int) -> None:
        """Let the time-outs of a member end later."""
        for kind in (Kind.SESSION, Kind.REBALANCE):
            self._timeouts.hold((kind, group, member_id), longer_us)

    # --- heartbeats

    def heartbeat(self, request: StreamsHeartbeat, done: StreamsHeartbeatDone) -> None:
        """Handle a heartbeat that has passed `check`, and answer when its changes are committed.

        Raises Refused.
        """
        if request.member_epoch == LEFT_EPOCH:
            self._leave(request, done)
            return
        joins, shard = request.member_epoch == 0, self._shard
        group, changes = self._group(request.group, joins)
        known = group.members.get(request.member_id)
        if known is None and not joins:
            raise _not_a_member(group, request.member_id)
        member = known or StreamsMember(request.member_id)
        _check_epoch(member, request)
        metadata = _updated(member.metadata, request)
        changed = known is None or metadata != known.metadata
        if changed:
            changes.append((StreamsMemberKey(group.name, member.member_id), metadata))
        topology = _topology(group, request, changes)
        status = _stale_status(group, metadata)
        configured, hashed = self._configure(group, topology)
        if configured.ready and request.owned is not None:
            _check_tasks(configured, request.owned)
        validated = configured.epoch if configured.ready else -1
        standbys = str(shard.group_setting(group.name, f"streams.{NUM_STANDBY_REPLICAS}"))
        configs = ((NUM_STANDBY_REPLICAS, standbys),)
        epoch = group.epoch
        asked = (hashed, validated, configs)
        if changed or asked != (group.metadata_hash, group.validated_epoch, group.configs):
            epoch = next_epoch(group)
            changes.append((StreamsEpochKey(group.name), StreamsEpochValue(epoch, *asked)))
        delay_ms = shard.group_setting(group.name, "streams.initial.rebalance.delay.ms")
        is_delayed = self._timeouts.running((Kind.INITIAL, group.name, ""))
        begins_delay = group.empty and delay_ms > 0 and not is_delayed
        updated = member._replace(metadata=metadata)
        if is_delayed or begins_delay:
            status.append(Status(StatusCode.ASSIGNMENT_DELAYED, DELAYED))
            target_epoch, target = group.target_epoch, NO_TASKS
        else:
            target_epoch, target = self._retarget(
                group, epoch, updated, configured, standbys, changes, status
            )
        if request.repeats_tasks and not updated.reconciled_to(target_epoch):
            raise _failed()
        current = self._reconcile(group, updated, target_epoch, target, request.owned)
        if current != member.current:
            changes.append((StreamsCurrentKey(group.name, member.member_id), current))
        updated = updated._replace(current=current)
        shutdown_by = group.shutdown_by
        if request.shuts_down and shutdown_by is None:
            shutdown_by = member.member_id
        assigns = joins or current.assigned != member.current.assigned
        endpoints_epoch = group.endpoints_epoch
        if assigns and metadata.endpoint is not None:
            endpoints_epoch += 1
        endpoints = None
        if endpoints_epoch != request.endpoints_epoch:
            endpoints = self._endpoints(group, updated, configured)
        if configured.status is not None:
            status.append(configured.status)
        if shutdown_by is not None:
            detail = (
                f"Streams group member {shutdown_by} encountered a fatal error and requested a "
                "shutdown for the entire application."
            )
            status.append(Status(StatusCode.SHUTDOWN_APPLICATION, detail))
        is_new = shard.groups.get(group.name) is not group
        result = StreamsHeartbeatResult(
            ErrorCode.NONE,
            None,
            member.member_id,
            current.epoch,
            shard.group_setting(group.name, "streams.heartbeat.interval.ms"),
            tuple(status),
            current.assigned if assigns else None,
            0 if is_new else endpoints_epoch,
            endpoints,
            configured.missing,
        )

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else StreamsHeartbeatResult(code))

        if shard.change_group(group, changes, written):
            if not is_new:  # Kafka forgets what is not in the log when it puts a new group in its place.
                group.endpoints_epoch, group.shutdown_by = endpoints_epoch, shutdown_by
                group.configured, group.topics_checked = configured, shard.topics_number
            if begins_delay:
                self._delay(group.name, delay_ms)
            self._start_session(group, member.member_id)
            if current != member.current:
                self._watch_revocation(group, updated)

    def _group(self, name: str, creates: bool) -> tuple[StreamsGroup, list[Change]]:
        """Return the group, and the changes that make it a streams group. Raises Refused."""
        group = self._shard.groups.get(name)
        if isinstance(group, Group) and creates and group.empty:
            return StreamsGroup(name, group.offsets), list(group.tombstones())
        if group is None and creates:
            return StreamsGroup(name), []
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {name} not found.")
        if not isinstance(group, StreamsGroup):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a streams group.")
        most = self._shard.settings.streams_max_size
        if creates and len(group.members) >= most:
            message = f"The streams group has reached its maximum capacity of {most} members."
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        return group, []

    def _configure(self, group: StreamsGroup, topology: TopologyValue) -> tuple[Configured, int]:
        """Return what is made of the topology with the topics that exist, and their hash. Raises Refused."""
        image = self._shard.host.metadata()
        if group.configured is not None and group.topics_checked == self._shard.topics_number:
            return group.configured, group.metadata_hash
        hashed = self._hashes.of(required_topics(topology), image)
        same = group.topology is not None and hashed == group.metadata_hash
        if group.configured is not None and same:
            return group.configured, hashed
        return configure(topology, image.topics), hashed

    # --- the target assignment

    def _delay(self, name: str, delay_ms: int) -> None:
        """Let a new group wait for more members before tasks are assigned."""

        def ended() -> None:
            group = self._shard.groups.get(name)
            if not isinstance(group, StreamsGroup) or group.empty or group.configured is None:
                return
            changes: list[Change] = []
            self._assign(group, group.epoch, None, group.configured, dict(group.configs), changes)
            self._shard.change_group(group, changes, lambda code: None)

        self._timeouts.start((Kind.INITIAL, name, ""), delay_ms, ended)

    def _retarget(
        self,
        group: StreamsGroup,
        epoch: int,
        member: StreamsMember,
        configured: Configured,
        standbys: str,
        changes: list[Change],
        status: list[Status],
    ) -> tuple[int, Tasks]:
        """Return the epoch of the target assignment and the member's part of it, after calculating it if the
        group's epoch is a new one, but not while it has to wait."""
        early = self._shard.assigned_lately(group, "streams.assignment.interval.ms")
        if epoch > group.target_epoch and early:
            status.append(Status(StatusCode.ASSIGNMENT_DELAYED, EARLY))
        if epoch <= group.target_epoch or early:
            return group.target_epoch, group.targets.get(member.member_id, NO_TASKS)
        targets = self._assign(group, epoch, member, configured, {NUM_STANDBY_REPLICAS: standbys}, changes)
        return epoch, targets[member.member_id]

    def _assign(
        self,
        group: StreamsGroup,
        epoch: int,
        member: StreamsMember | None,
        configured: Configured,
        configs: Mapping[str, str],
        changes: list[Change],
    ) -> dict[str, Tasks]:
        """Calculate the target assignment of an epoch, in which a member is as given."""
        processes = {known.member_id: known.metadata.process_id for known in group.members.values()}
        if member is not None:
            processes[member.member_id] = member.metadata.process_id
        targets: dict[str, Tasks] = dict.fromkeys(java_map_order(processes), NO_TASKS)
        if configured.ready:
            counts = [
                TaskCount(name, subtopology.tasks, bool(subtopology.changelogs))
                for name, subtopology in (configured.subtopologies or {}).items()
            ]
            standbys = int(configs.get(NUM_STANDBY_REPLICAS, 0))
            targets = assign_sticky(processes, group.targets, counts, standbys)
        for member_id, tasks in targets.items():
            if tasks != group.targets.get(member_id):
                changes.append((StreamsTargetKey(group.name, member_id), StreamsTargetValue(tasks)))
        calculated = StreamsTargetEpochValue(epoch, self._shard.now_ms)
        changes.append((StreamsTargetEpochKey(group.name), calculated))
        return targets

    def _reconcile(
        self, group: StreamsGroup, member: StreamsMember, epoch: int, tasks: Tasks, owned: Tasks | None
    ) -> StreamsCurrentValue:
        """Return what a member has once it is as near to the target assignment of this epoch as it can be."""
        if member.reconciled_to(epoch):
            return member.current
        holders, process_id = Holders(group), member.metadata.process_id
        target = Target(epoch, tasks, frozenset(tasks))
        after = next_assignment(
            member.current,
            target,
            owned,
            False,
            lambda key, partition: holders.hold(process_id, key, partition),
        )
        return after._replace(
            assigned=_without_epochs_of_copies(after.assigned),
            revoking=_without_epochs_of_copies(after.revoking),
        )

    # --- endpoints

    def _endpoints(
        self, group: StreamsGroup, member: StreamsMember, configured: Configured
    ) -> tuple[EndpointPartitions, ...]:
        """Return what is read behind the endpoints of all members. Raises Refused."""
        others = (known for known in group.members.values() if known.member_id != member.member_id)
        return tuple(
            EndpointPartitions(
                known.metadata.endpoint,
                self._partitions(known.current.assigned, Role.ACTIVE, configured),
                self._partitions(known.current.assigned, Role.STANDBY, configured),
            )
            for known in (*others, member)
            if known.metadata.endpoint is not None
        )

    def _partitions(
        self, assigned: OwnedTasks, role: Role, configured: Configured
    ) -> tuple[tuple[str, tuple[int, ...]], ...]:
        topics, subtopologies = self._shard.host.metadata().topics, configured.subtopologies
        rows: list[tuple[str, tuple[int, ...]]] = []
        for key, numbers in assigned.items():
            if subtopologies is None or key.subtopology not in subtopologies:
                raise _failed()
            if key.role is role:
                subtopology, in_order = subtopologies[key.subtopology], sorted(numbers)
                sources = sorted(subtopology.source_topics)
                names = dict.fromkeys((*sources, *subtopology.repartition_sources))
                for topic in java_map_order(names, max(len(sources) * 4 // 3 + 1, 16)):
                    if topic not in topics:
                        raise _failed()
                    rows.append((topic, tuple(in_order[: len(topics[topic].partitions)])))
        if subtopologies is None:
            raise _failed()
        return tuple(rows)

    # --- leaving

    def _leave(self, request: StreamsHeartbeat, done: StreamsHeartbeatDone) -> None:
        group = self._shard.groups.get(request.group)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group} not found.")
        if not isinstance(group, StreamsGroup):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group} is not a streams group.")
        if request.shuts_down and group.shutdown_by is None:
            group.shutdown_by = request.member_id
        if request.member_id not in group.members:
            raise _not_a_member(group, request.member_id)
        result = StreamsHeartbeatResult(
            ErrorCode.NONE, member_id=request.member_id, member_epoch=request.member_epoch
        )

        def written(code: ErrorCode) -> None:
            done(result if code is ErrorCode.NONE else StreamsHeartbeatResult(code))

        self._remove(group, request.member_id, written)

    def _remove(self, group: StreamsGroup, member_id: str, written: Callable[[ErrorCode], None]) -> bool:
        """Remove a member from a group, which gets a new epoch. Return whether that is in the log."""
        name, epoch = group.name, next_epoch(group)
        value = StreamsEpochValue(epoch, group.metadata_hash, group.validated_epoch, group.configs)
        changes: Sequence[Change] = [
            (StreamsCurrentKey(name, member_id), None),
            (StreamsTargetKey(name, member_id), None),
            (StreamsMemberKey(name, member_id), None),
            (StreamsEpochKey(name), value),
        ]
        if not self._shard.change_group(group, changes, written):
            return False
        self._timeouts.cancel((Kind.SESSION, name, member_id))
        self._timeouts.cancel((Kind.REBALANCE, name, member_id))
        return True

    # --- time-outs

    def _start_session(self, group: StreamsGroup, member_id: str) -> None:
        timeout_ms = self._shard.group_setting(group.name, "streams.session.timeout.ms")
        self._watch(Kind.SESSION, group.name, member_id, timeout_ms, None)

    def _watch_revocation(self, group: StreamsGroup, member: StreamsMember) -> None:
        """Remove a member if it does not revoke its tasks within its rebalance timeout."""
        if member.current.state is MemberState.UNREVOKED_PARTITIONS:
            timeout_ms = member.metadata.rebalance_timeout_ms
            self._watch(Kind.REBALANCE, group.name, member.member_id, timeout_ms, member.current.epoch)
        else:
            self._timeouts.cancel((Kind.REBALANCE, group.name, member.member_id))

    def _watch(self, kind: Kind, name: str, member_id: str, delay_ms: int, epoch: int | None) -> None:
        """Remove a member after `delay_ms`, if it is in this epoch then. If the log takes no changes at that
        time, it is tried again."""

        def ended() -> None:
            group = self._shard.groups.get(name)
            member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
            if not isinstance(group, StreamsGroup) or not isinstance(member, StreamsMember):
                return
            is_in_epoch = epoch is None or member.current.epoch == epoch
            if is_in_epoch and not self._remove(group, member_id, lambda code: None):
                self._watch(kind, name, member_id, RETRY_MS, epoch)

        self._timeouts.start((kind, name, member_id), delay_ms, ended)


def _failed() -> Refused:
    """Return the refusal of a request with which Kafka's coordinator fails."""
    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _updated(known: StreamsMemberValue, request: StreamsHeartbeat) -> StreamsMemberValue:
    """Return what a member says about itself after a heartbeat. Raises Refused."""
    timeout_ms, topology = request.rebalance_timeout_ms, request.topology
    if len(dict(request.tags or ())) < len(request.tags or ()):
        raise _failed()
    return StreamsMemberValue(
        None,
        known.rack_id if request.rack_id is None else request.rack_id,
        request.client_id,
        request.client_host,
        known.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        known.topology_epoch if topology is None else topology.epoch,
        known.process_id if request.process_id is None else request.process_id,
        known.endpoint if request.endpoint is None else request.endpoint,
        known.tags if request.tags is None else tuple(sorted(request.tags)),
    )


def _topology(group: StreamsGroup, request: StreamsHeartbeat, changes: list[Change]) -> TopologyValue:
    """Return the group's topology, which its first member brings. Raises Refused."""
    known, asked = group.topology, request.topology
    if known is None:
        if asked is None:
            raise _failed()
        changes.append((TopologyKey(group.name), asked))
        return asked
    if asked is None or asked.epoch < known.epoch:
        return known
    if asked.epoch > known.epoch or by_id(asked) != by_id(known):
        raise Refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _stale_status(group: StreamsGroup, metadata: StreamsMemberValue) -> list[Status]:
    if group.topology is None or metadata.topology_epoch >= group.topology.epoch:
        return []
    detail = (
        f"The member's topology epoch {metadata.topology_epoch} is behind the group's topology epoch "
        f"{group.topology.epoch}."
    )
    return [Status(StatusCode.STALE_TOPOLOGY, detail)]


def _check_epoch(member: StreamsMember, request: StreamsHeartbeat) -> None:
    """Check the epoch with which a member comes. Raises Refused."""
    epoch, current = request.member_epoch, member.current
    if epoch in (0, current.epoch):
        return
    if epoch < current.epoch and epoch == current.previous_epoch and request.owned is not None:
        assigned = current.assigned
        if all(key in assigned and assigned[key].keys() >= has for key, has in request.owned.items()):
            return  # The answer with the new epoch may have been lost.
    word = "greater" if epoch > current.epoch else "smaller"
    message = (
        f"The streams group member has a {word} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _check_tasks(configured: Configured, owned: Tasks) -> None:
    """Check that the tasks which a member has exist. Raises Refused."""
    for (_, name), numbers in owned.items():
        subtopology = (configured.subtopologies or {}).get(name)
        if subtopology is None:
            message = f"Subtopology {name} does not exist in the topology."
            raise Refused(ErrorCode.INVALID_REQUEST, message)
        for number in _outside(numbers, subtopology.tasks):
            message = (
                f"Task {number} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                f"{subtopology.tasks}"
            )
            raise Refused(ErrorCode.INVALID_REQUEST, message)


def _outside(numbers: Iterable[int], count: int) -> list[int]:
    return sorted(number for number in numbers if not 0 <= number < count)[:1]


def _without_epochs_of_copies(owned: OwnedTasks) -> OwnedTasks:
    return {
        key: numbers if key.role is Role.ACTIVE else dict.fromkeys(numbers, 0)
        for key, numbers in owned.items()
    }


def _not_a_member(group: StreamsGroup, member_id: str) -> Refused:
    message = f"Member {member_id} is not a member of group {group.name}."
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, message)
