"""DescribeConfigs (32) 1–4, AlterConfigs (33) 0–2, IncrementalAlterConfigs (44) 0–1, ListConfigResources (74)
0–1: read and change the settings of topics, brokers and groups.

DescribeConfigs: v1 adds the source of a value, v3 types and documentation, v4 is flexible. AlterConfigs
replaces all settings of a resource, IncrementalAlterConfigs changes single ones. ListConfigResources v0 lists
client metrics only. A broker describes all settings that Kafka's has; most of them change nothing here, nor
do its log levels and subscriptions of client metrics. Left out on purpose: documentation (null).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kafka.protocol.admin.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

from kview.model.address import Address
from kview.serve.apis.config_rows import ConfigRows, config_row
from kview.serve.apis.gather import Gather, forward, message_of
from kview.serve.call import Api, Call, Steps, shortened
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.alterations import Alteration, Operation
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.refusals import wrong_topic_name
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.results import AdminResult, ConfigEntry

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
RESOURCE_TYPES = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)
_ID = re.compile(r"[+-]?[0-9]{1,10}")
CLIENT_METRICS_ONLY = 0
"""The version of ListConfigResources that lists client metrics only."""

Entries = tuple[ErrorCode, str, Sequence[ConfigEntry]]


def describe_configs(call: Call) -> Steps:
    """Answer with the settings of each resource, either those requested or all."""
    results = []
    rows = ConfigRows(lambda setting: _row(call, setting))
    for entry in call.request.resources:
        results.append(_resource(call, entry, rows))
        yield
    call.answer(DescribeConfigsResponse(version=call.version, results=results))


def _resource(call: Call, entry: Any, rows: ConfigRows) -> Any:
    kind, name = entry.resource_type, entry.resource_name
    refused = _refusal(call, AclOperation.DESCRIBE_CONFIGS, kind, name)
    named = frozenset(entry.configuration_keys or ())
    if refused is None:
        error, message, entries = _entries(call, kind, name, named)
    else:
        error, message, entries = refused, MESSAGES[refused], ()
    return DescribeConfigsResponse.DescribeConfigsResult(
        version=call.version,
        error_code=error,
        error_message=shortened(message),
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        configs=rows.of([e for e in entries if not named or e.name in named]),
    )


def _entries(call: Call, kind: int, name: str, named: Collection[str]) -> Entries:
    """Return the settings of a resource, at least the `named` ones if there are any."""
    if kind == TOPIC:
        wrong = wrong_topic_name(name)
        if wrong is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, wrong, ()
        if name not in call.image.topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "", ()
        return ErrorCode.NONE, "", call.cluster.descriptions.topic_configs(call.broker, name, named)
    if kind == BROKER:
        wrong = _wrong_broker(call, name, "Broker id", " or empty string,")
        if wrong is not None:
            return ErrorCode.INVALID_REQUEST, wrong, ()
        described = call.cluster.descriptions
        if not name:
            return ErrorCode.NONE, "", described.default_broker_configs(call.broker)
        return ErrorCode.NONE, "", described.broker_configs(call.broker, _static(call))
    if kind == GROUP and not call.cluster.world.release.group_configs:
        return ErrorCode.INVALID_REQUEST, MESSAGES[ErrorCode.INVALID_REQUEST], ()
    if kind == GROUP and not name:
        return ErrorCode.INVALID_REQUEST, "Group name must not be empty", ()
    if kind == GROUP:
        return ErrorCode.NONE, "", call.cluster.descriptions.group_configs(call.broker, name)
    if kind == BROKER_LOGGER:
        wrong = _wrong_broker(call, name, "Broker id", "") if name else "Broker id must not be empty"
        if wrong is not None:
            return ErrorCode.INVALID_REQUEST, wrong, ()
        return ErrorCode.NONE, "", call.cluster.descriptions.loggers(call.broker).entries()
    if kind == CLIENT_METRICS and not name:
        return ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty", ()
    if kind == CLIENT_METRICS:
        return ErrorCode.NONE, "", call.cluster.descriptions.client_metrics(call.broker, name)
    return ErrorCode.INVALID_REQUEST, MESSAGES[ErrorCode.INVALID_REQUEST], ()


def _refusal(call: Call, operation: AclOperation, kind: int, name: str) -> ErrorCode | None:
    """Return the error for a client that may not see or change the settings of a resource, or None."""
    if kind == TOPIC:
        may = call.may(operation, ResourceType.TOPIC, name)
        return None if may else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if kind == GROUP:
        may = call.may(operation, ResourceType.GROUP, name)
        return None if may else ErrorCode.GROUP_AUTHORIZATION_FAILED
    may = call.may(operation, ResourceType.CLUSTER)
    return None if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _static(call: Call) -> dict[str, str]:
    """Return the settings of this broker that only its network side knows, as if they were in its file."""
    protocol = call.wire.security.protocol
    advertised = Address(*call.wire.endpoint(call.broker))
    listening = call.wire.listening.get(call.broker, advertised)
    return {
        "advertised.listeners": f"{protocol}://{advertised}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{protocol}://{listening}",
        "log.dirs": ",".join(call.cluster.brokers[call.broker].dirs.paths),
        "max.incremental.fetch.session.cache.slots": "0",
        "process.roles": "broker",
        **call.wire.security.settings,
    }


def _wrong_broker(call: Call, name: str, what: str, or_empty: str) -> str | None:
    """Return why this broker does not answer for the broker `name`. The empty name means all brokers.

    `what` and `or_empty` are what Kafka calls the name, and what else it would take.
    """
    if name in ("", str(call.broker)):
        return None
    if not _ID.fullmatch(name):
        return f"{what} must be an integer, but it is: {name}"
    return f"Unexpected broker id, expected {call.broker}{or_empty} but received {name}"


def _wrong_node(call: Call, name: str) -> str | None:
    """Return why this broker does not change the log levels of the broker `name`."""
    if name == str(call.broker):
        return None
    if not _ID.fullmatch(name):
        return f"Node id must be an integer, but it is: {name}"
    received = call.broker if call.cluster.world.release.scala_configs else name  # A mistake of Kafka 3.9.
    return f"Unexpected node id. Expected {call.broker}, but received {received}"


def _row(call: Call, entry: ConfigEntry) -> Any:
    version = call.version
    per_entry = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult
    synonyms = []
    if call.request.include_synonyms:
        synonyms = [
            per_entry.DescribeConfigsSynonym(version=version, name=s.name, value=s.value, source=s.source)
            for s in entry.synonyms
        ]
    return config_row(
        per_entry, version, entry, synonyms=synonyms, config_type=entry.type, documentation=None
    )


def alter_configs(call: Call) -> Steps:
    """Replace all settings of each resource, and answer once the controller has decided on all."""

    def changes(entry: Any) -> list[Alteration]:
        return [Alteration(config.name, Operation.SET, config.value) for config in entry.configs]

    return _alter_all(call, AlterConfigsResponse, changes, others_too=True)


def incremental_alter_configs(call: Call) -> Steps:
    """Change single settings of each resource, and answer once the controller has decided on all."""

    def changes(entry: Any) -> list[Alteration]:
        return [Alteration(c.name, c.config_operation, c.value) for c in entry.configs]

    return _alter_all(call, IncrementalAlterConfigsResponse, changes, others_too=False)


def _alter_all(
    call: Call, response: Any, changes: Callable[[Any], list[Alteration]], others_too: bool
) -> Steps:
    resources = call.request.resources
    gather = Gather(call, lambda rows: response(version=call.version, responses=rows))
    times = Counter(map(_resource_of, resources))
    for entry in resources:
        _alter(call, gather, response, entry, changes(entry), times, others_too)
        yield
    gather.close()


def _resource_of(entry: Any) -> tuple[int, str]:
    return entry.resource_type, entry.resource_name


def _alter(
    call: Call,
    gather: Gather,
    response: Any,
    entry: Any,
    changes: Sequence[Alteration],
    times: Mapping[tuple[int, str], int],
    others_too: bool,
) -> None:
    """Change one resource. `times` says how often the request names each."""
    kind, name, admin = entry.resource_type, entry.resource_name, call.cluster.admin
    validate_only = call.request.validate_only
    place = gather.place()

    def altered(result: AdminResult) -> None:
        row = response.AlterConfigsResourceResponse(
            version=call.version,
            error_code=result.error_code,
            error_message=message_of(result),
            resource_type=kind,
            resource_name=name,
        )
        gather.put(place, row)

    def ask() -> AdminResult:
        if kind == TOPIC:
            return admin.alter_topic(name, changes, others_too, validate_only)
        if kind == GROUP:
            return admin.alter_group(name, changes, others_too, validate_only)
        if kind == CLIENT_METRICS:
            return admin.alter_client_metrics(name, changes, others_too, validate_only)
        return admin.alter_broker(name, changes, others_too, validate_only)

    wrong = None
    if times[kind, name] > 1:
        wrong = AdminResult(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    elif (code := _refusal(call, AclOperation.ALTER_CONFIGS, kind, name)) is not None:
        wrong = AdminResult(code, MESSAGES[code])
    elif kind == TOPIC and (message := wrong_topic_name(name)) is not None:
        wrong = AdminResult(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    elif kind == BROKER and (message := _wrong_broker(call, name, "Node id", ",")) is not None:
        wrong = AdminResult(ErrorCode.INVALID_REQUEST, message)
    elif kind == BROKER_LOGGER and not others_too:
        message = _wrong_node(call, name)
        wrong = AdminResult(ErrorCode.INVALID_REQUEST, message)
        if message is None:
            wrong = call.cluster.descriptions.loggers(call.broker).alter(changes, validate_only)
    elif kind not in (TOPIC, BROKER, CLIENT_METRICS) and not (
        kind == GROUP and call.cluster.world.release.group_configs
    ):
        wrong = AdminResult(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    if wrong is not None:
        altered(wrong)
    else:
        forward(call, ask, NO_CONTROLLER, altered)


def list_config_resources(call: Call) -> None:
    """Answer with the resources of the requested types, or of all types, that can have settings."""
    version, image = call.version, call.image
    if not call.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        call.answer(ListConfigResourcesResponse(version=version, error_code=code, config_resources=[]))
        return
    if version == CLIENT_METRICS_ONLY:
        types: Sequence[int] = (CLIENT_METRICS,)
    else:
        types = call.request.resource_types or RESOURCE_TYPES
    names: dict[int, Sequence[str]] = {
        TOPIC: list(image.topics),
        BROKER: [str(broker) for broker in image.live_brokers()],
        BROKER_LOGGER: [str(broker) for broker in image.live_brokers()],
        GROUP: list(image.group_configs),
        CLIENT_METRICS: list(image.client_metrics),
    }
    known = set(types) <= set(RESOURCE_TYPES)
    rows = [
        ListConfigResourcesResponse.ConfigResource(version=version, resource_name=name, resource_type=kind)
        for kind in RESOURCE_TYPES
        if known and kind in types
        for name in names.get(kind, ())
    ]
    error = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION
    call.answer(ListConfigResourcesResponse(version=version, error_code=error, config_resources=rows))


APIS = (
    Api(32, DescribeConfigsRequest, (1, 4), describe_configs),
    Api(33, AlterConfigsRequest, (0, 2), alter_configs),
    Api(44, IncrementalAlterConfigsRequest, (0, 1), incremental_alter_configs),
    Api(74, ListConfigResourcesRequest, (0, 1), list_config_resources),
)
