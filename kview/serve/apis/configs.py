"""DescribeConfigs (32), versions 1–4: the settings of topics and of the broker that answers.

v1 adds the source of a value, v3 types and documentation, v4 is flexible. The only synonym listed is the
value itself. Left out on purpose: types (UNKNOWN), documentation (null), a broker's log levels
(INVALID_REQUEST), and settings that the simulated cluster does not use.
"""

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse

from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode
from kview.simulate.results import ConfigEntry

TOPIC, BROKER = 2, 4


def describe_configs(call: Call) -> None:
    """Answer with the settings of each resource, either those requested or all."""
    results = [_resource(call, entry) for entry in call.request.resources]
    call.answer(DescribeConfigsResponse(version=call.version, results=results))


def _resource(call: Call, entry: Any) -> Any:
    error, message, entries = _entries(call, entry.resource_type, entry.resource_name)
    named = entry.configuration_keys
    wanted = [e for e in entries if named is None or e.name in named]
    per_result = DescribeConfigsResponse.DescribeConfigsResult
    return per_result(
        version=call.version,
        error_code=error,
        error_message=message,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        configs=[
            _entry(call, per_result.DescribeConfigsResourceResult, e, entry.resource_type) for e in wanted
        ],
    )


def _entries(call: Call, kind: int, name: str) -> tuple[ErrorCode, str | None, Sequence[ConfigEntry]]:
    if kind == TOPIC:
        if name not in call.image.topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, ()
        return ErrorCode.NONE, None, call.cluster.topic_configs(call.broker, name)
    if kind == BROKER:
        if name not in ("", str(call.broker)):
            message = f"Unexpected broker id, expected {call.broker} or empty string, but received {name}"
            return ErrorCode.INVALID_REQUEST, message, ()
        return ErrorCode.NONE, None, call.cluster.broker_configs(call.broker)
    return ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}", ()


def _entry(call: Call, per_entry: Any, entry: ConfigEntry, kind: int) -> Any:
    version = call.version
    synonyms = []
    if call.request.include_synonyms:
        synonyms = [
            per_entry.DescribeConfigsSynonym(
                version=version, name=entry.name, value=entry.value, source=entry.source
            )
        ]
    return per_entry(
        version=version,
        name=entry.name,
        value=entry.value,
        read_only=kind == BROKER,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=synonyms,
        documentation=None,
    )


APIS = (Api(32, DescribeConfigsRequest, (1, 4), describe_configs),)
