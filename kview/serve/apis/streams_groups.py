"""StreamsGroupHeartbeat (88) 0 and StreamsGroupDescribe (89) 0: members of streams groups (KIP-1071).

The broker that answers a heartbeat has the missing internal topics created, in the client's name. The answer
does not wait for them, but it says why an attempt before has failed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kview.serve.apis.consumer_groups import GroupKind, described_groups, heartbeat_refusal
from kview.serve.apis.operations import NOT_ASKED, bits
from kview.serve.call import Api, Call, Steps, shortened
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.features import STREAMS_VERSION
from kview.simulate.groups.streams_group import StreamsMember
from kview.simulate.groups.streams_records import (
    NO_TASKS,
    CopartitionGroup,
    OwnedTasks,
    Role,
    Subtopology,
    TaskKey,
    Tasks,
    TopicInfo,
    TopologyValue,
)
from kview.simulate.groups.streams_results import (
    DescribedStreamsGroup,
    EndpointPartitions,
    StreamsHeartbeat,
    StreamsHeartbeatResult,
)
from kview.simulate.groups.streams_topology import (
    TASKS_MAX,
    ConfiguredSubtopology,
    InternalTopic,
    Status,
    StatusCode,
    all_topics,
    by_id,
)
from kview.simulate.topics import CreatableTopic, valid_topic_name
from kview.simulate.world import INTERNAL_TOPICS
from kview.wire.group_messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from kview.wire.member_messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

TOPOLOGY_MAX = 2_000
"""Limit of the subtopologies of a topology, their topics and their copartition groups, all together. Kafka's
limit is the size of a record, 1 MB."""

DETAILS_MAX = 20_000
"""Limit of the configurations of a topology's topics, of the places in its copartition groups, and of a
member's tags, all together."""

ERRORS_SHOWN_MAX = 3
"""Topics of which a status says why they could not be created."""

_LISTS = {Role.ACTIVE: "active_tasks", Role.STANDBY: "standby_tasks", Role.WARMUP: "warmup_tasks"}


def heartbeat(call: Call) -> None:
    """Let a member join, stay or leave, and answer when that is committed."""
    request = call.request

    def answer(result: StreamsHeartbeatResult) -> None:
        call.answer(_response(call, result))

    refused, topology = _refusal(call), None
    if refused is None and request.topology is not None:
        topology = _topology(request.topology)
        refused = _topics_refusal(call, topology)
    if refused is not None:
        answer(refused)
        return
    call.is_from_member(request.group_id, request.member_id)
    lists = [getattr(request, name) for name in _LISTS.values()]
    owned = None
    if None not in lists:
        owned = {
            TaskKey(role, entry.subtopology_id): frozenset(entry.partitions)
            for role, entries in zip(Role, lists, strict=True)
            for entry in entries
        }
    endpoint, tags = request.user_endpoint, request.client_tags
    call.cluster.groups(call.broker).streams_heartbeat(
        StreamsHeartbeat(
            request.group_id,
            request.member_id,
            request.member_epoch,
            call.client_id,
            call.client_host,
            request.endpoint_information_epoch,
            request.instance_id,
            request.rack_id,
            request.rebalance_timeout_ms,
            topology,
            owned,
            request.process_id,
            None if endpoint is None else (endpoint.host, endpoint.port),
            None if tags is None else _pairs(tags),
            request.shutdown_application,
            _unsupported(request),
            any(tasks is not None for tasks in lists) and owned is None,
            owned is not None and len(owned) < sum(map(len, lists)),
        ),
        call.later(answer),
    )


def _refusal(call: Call) -> StreamsHeartbeatResult | None:
    """Return why a heartbeat is refused before the coordinator sees it, or None."""
    request = call.request
    code = heartbeat_refusal(call, STREAMS_VERSION, None)
    if code is not ErrorCode.NONE:
        return StreamsHeartbeatResult(code)
    has = [entry for name in _LISTS.values() for entry in getattr(request, name) or ()]
    if len(has) + sum(len(entry.partitions) for entry in has) > TASKS_MAX:
        message = f"A member has more than {TASKS_MAX} tasks."
        return StreamsHeartbeatResult(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    if _details(request) > DETAILS_MAX:
        message = f"A member has more than {DETAILS_MAX} tags, or its topology other details."
        return StreamsHeartbeatResult(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    if request.topology is not None and _size(request.topology) > TOPOLOGY_MAX:
        message = f"A topology has more than {TOPOLOGY_MAX} topics, or other parts."
        return StreamsHeartbeatResult(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    return None


def _topics_refusal(call: Call, topology: TopologyValue) -> StreamsHeartbeatResult | None:
    """Return what is wrong with the names of a topology's topics, or None if the client may use them all."""
    topics = all_topics(topology)
    internal = [name for name in topics if name in INTERNAL_TOPICS]
    invalid = [name for name in topics if not valid_topic_name(name)]
    if internal:
        names = ",".join(internal)
        message = f"Use of Kafka internal topics {names} in a Kafka Streams topology is prohibited."
    elif invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
    if internal or invalid:
        return StreamsHeartbeatResult(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    code = heartbeat_refusal(call, STREAMS_VERSION, topics)
    return None if code is ErrorCode.NONE else StreamsHeartbeatResult(code)


def _size(topology: Any) -> int:
    """Return how many parts a topology has."""
    lists = ("source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics",
             "repartition_source_topics", "copartition_groups")  # fmt: skip
    return sum(1 + sum(len(getattr(each, name)) for name in lists) for each in topology.subtopologies)


def _details(request: Any) -> int:
    """Return how many tags a member has, and how many configurations and places its topology has."""
    subtopologies = () if request.topology is None else request.topology.subtopologies
    groups = (group for each in subtopologies for group in each.copartition_groups)
    lists = ("source_topics", "source_topic_regex", "repartition_source_topics")
    places = sum(len(getattr(group, name)) for group in groups for name in lists)
    topics = (
        t for each in subtopologies for t in (*each.state_changelog_topics, *each.repartition_source_topics)
    )
    return len(request.client_tags or ()) + places + sum(len(topic.topic_configs) for topic in topics)


def _unsupported(request: Any) -> str | None:
    """Return what a request has that Kafka does not support yet, or None."""
    if request.instance_id is not None:
        return "Static membership is not yet supported."
    if request.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if request.warmup_tasks:
        return "WarmupTasks are not supported yet."
    subtopologies = () if request.topology is None else request.topology.subtopologies
    if any(subtopology.source_topic_regex for subtopology in subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _pairs(entries: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    return tuple((entry.key, entry.value) for entry in entries)


def _topology(topology: Any) -> TopologyValue:
    """Return a request's topology as it is kept."""
    return TopologyValue(
        topology.epoch,
        tuple(
            Subtopology(
                entry.subtopology_id,
                tuple(entry.source_topics),
                tuple(entry.source_topic_regex),
                _topics(entry.state_changelog_topics),
                tuple(entry.repartition_sink_topics),
                _topics(entry.repartition_source_topics),
                tuple(
                    CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in entry.copartition_groups
                ),
            )
            for entry in topology.subtopologies
        ),
    )


def _topics(entries: Iterable[Any]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(entry.name, entry.partitions, entry.replication_factor, _pairs(entry.topic_configs))
        for entry in entries
    )


def _response(call: Call, result: StreamsHeartbeatResult) -> Any:
    version, kind = call.version, StreamsGroupHeartbeatResponse
    status = result.status
    if result.missing:
        status = _create(call, result.missing, status, 2 * result.heartbeat_interval_ms)
    assigned = {} if result.tasks is None else _lists(kind.TaskIds, version, result.tasks)
    endpoints = None
    if result.endpoints is not None:
        endpoints = [_endpoint(version, entry) for entry in result.endpoints]
    return kind(
        version=version,
        error_code=result.error_code,
        error_message=None if result.message is None else shortened(result.message),
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        status=[
            kind.Status(version=version, status_code=code, status_detail=shortened(detail))
            for code, detail in status
        ],
        endpoint_information_epoch=result.endpoints_epoch,
        partitions_by_user_endpoint=endpoints,
        **assigned,
    )


def _lists(task_ids: Any, version: int, tasks: Tasks | OwnedTasks) -> dict[str, Any]:
    """Return the three lists of tasks in an answer, sorted by subtopology."""
    return {
        name: [
            task_ids(version=version, subtopology_id=key.subtopology, partitions=sorted(tasks[key]))
            for key in sorted(tasks)
            if key.role is role
        ]
        for role, name in _LISTS.items()
    }


def _endpoint(version: int, entry: EndpointPartitions) -> Any:
    kind = StreamsGroupHeartbeatResponse.EndpointToPartitions
    host, port = entry.endpoint

    def rows(partitions: Iterable[tuple[str, tuple[int, ...]]]) -> list[Any]:
        row = kind.TopicPartition
        return [row(version=version, topic=topic, partitions=list(numbers)) for topic, numbers in partitions]

    return kind(
        version=version,
        user_endpoint=kind.Endpoint(version=version, host=host, port=port),
        active_partitions=rows(entry.active),
        standby_partitions=rows(entry.standby),
    )


def _create(
    call: Call, missing: Mapping[str, InternalTopic], status: tuple[Status, ...], remember_ms: int
) -> tuple[Status, ...]:
    """Have internal topics created, and return the status with what went wrong so far."""
    details = ""
    may_create_any = call.may(AclOperation.CREATE, ResourceType.CLUSTER)
    denied = [
        name
        for name in missing
        if not may_create_any and not call.may(AclOperation.CREATE, ResourceType.TOPIC, name)
    ]
    if denied:
        details = f"; Unauthorized to CREATE on topics {', '.join(denied)}."
    else:
        topics = [
            CreatableTopic(topic.name, topic.partitions, topic.replication or -1, None, topic.configs)
            for topic in missing.values()
        ]
        errors = call.cluster.topics.create_for_client(call.broker, topics, remember_ms)
        if errors:
            shown = [f"{name} ({why})" for name, why in list(errors.items())[:ERRORS_SHOWN_MAX]]
            more = len(errors) - len(shown)
            details = f"; Creation failed: {', '.join(shown)}{f' and {more} more' if more else ''}."
    return tuple(
        entry._replace(detail=entry.detail + details)
        if entry.code is StatusCode.MISSING_INTERNAL_TOPICS
        else entry
        for entry in status
    )


def describe(call: Call) -> Steps:
    """Answer with the state of each group, with its topology, and with what its members have."""
    coordinator = call.cluster.groups(call.broker)
    groups = yield from described_groups(call, _KIND, coordinator.describe_streams_group)
    call.answer(StreamsGroupDescribeResponse(version=call.version, groups=groups))


def _topics_of(call: Call, group: DescribedStreamsGroup) -> Iterable[str]:
    return () if group.topology is None else all_topics(group.topology)


def _described(call: Call, group: DescribedStreamsGroup, members: list[Any]) -> Any:
    version = call.version
    asked = call.request.include_authorized_operations and not group.error_code
    kind = StreamsGroupDescribeResponse.DescribedGroup
    topology = None
    if group.topology is not None:
        configured = group.configured
        subtopologies: Mapping[str, Subtopology | ConfiguredSubtopology] = by_id(group.topology)
        if configured is not None and configured.ready:
            subtopologies = configured.subtopologies or {}
        topology = kind.Topology(
            version=version,
            epoch=group.topology.epoch,
            subtopologies=[
                _subtopology(version, name, subtopologies[name]) for name in sorted(subtopologies)
            ],
        )
    return kind(
        version=version,
        error_code=group.error_code,
        error_message=None if group.message is None else shortened(group.message),
        group_id=group.group,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        topology=topology,
        members=members,
        authorized_operations=bits(call.operations(ResourceType.GROUP, group.group)) if asked else NOT_ASKED,
    )


def _subtopology(version: int, name: str, subtopology: Subtopology | ConfiguredSubtopology) -> Any:
    repartition, changelogs = subtopology.repartition_sources, subtopology.changelogs
    return StreamsGroupDescribeResponse.DescribedGroup.Topology.Subtopology(
        version=version,
        subtopology_id=name,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sinks),
        state_changelog_topics=_infos(version, changelogs),
        repartition_source_topics=_infos(version, repartition),
    )


def _infos(version: int, topics: tuple[TopicInfo, ...] | Mapping[str, InternalTopic]) -> list[Any]:
    kind = StreamsGroupDescribeResponse.DescribedGroup.Topology.Subtopology.TopicInfo
    every: Iterable[TopicInfo | InternalTopic] = topics.values() if isinstance(topics, Mapping) else topics
    rows = []
    for topic in sorted(every, key=lambda topic: topic.name):
        configs = topic.configs.items() if isinstance(topic, InternalTopic) else topic.configs
        rows.append(
            kind(
                version=version,
                name=topic.name,
                partitions=topic.partitions,
                replication_factor=topic.replication,
                topic_configs=[
                    kind.KeyValue(version=version, key=key, value=value) for key, value in configs
                ],
            )
        )
    return rows


def _member(call: Call, group: DescribedStreamsGroup, member: StreamsMember) -> Any:
    version, target = call.version, group.targets.get(member.member_id, NO_TASKS)
    metadata, kind = member.metadata, StreamsGroupDescribeResponse.DescribedGroup.Member
    endpoint = None
    if metadata.endpoint is not None:
        host, port = metadata.endpoint
        endpoint = kind.Endpoint(version=version, host=host, port=port)

    def assignment(tasks: Tasks | OwnedTasks) -> Any:
        return kind.Assignment(version=version, **_lists(kind.Assignment.TaskIds, version, tasks))

    return kind(
        version=version,
        member_id=member.member_id,
        member_epoch=member.current.epoch,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=endpoint,
        client_tags=[kind.KeyValue(version=version, key=key, value=value) for key, value in metadata.tags],
        assignment=assignment(member.current.assigned),
        target_assignment=assignment(target),
    )


_KIND = GroupKind(STREAMS_VERSION, DescribedStreamsGroup, _topics_of, _member, _described)

APIS = (
    Api(88, StreamsGroupHeartbeatRequest, (0, 0), heartbeat),
    Api(89, StreamsGroupDescribeRequest, (0, 0), describe),
)
