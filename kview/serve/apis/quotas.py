"""DescribeClientQuotas (48) 0–1 and AlterClientQuotas (49) 0–1: how much clients may use.

v1 of each is flexible. A broker describes the quotas in its metadata, the controller changes them. Brokers
enforce all of them. That of requests is measured by the time that this process takes for them.
"""

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

from kview.serve.apis.gather import forward, message_of
from kview.serve.call import Api, Call, Steps, shortened
from kview.serve.frames import Garbage
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.client_quotas import CLIENT_ID, IP, USER, Entity
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.requests.quota_changes import QuotaChange
from kview.simulate.results import AdminResult

CHANGES_MAX = 10_000
"""Limit of what a request names: quotas, and kinds of entities. Kafka has none."""
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
ENTITIES = (USER, CLIENT_ID, IP)
MATCHES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}
IP_ALONE = (
    "Invalid entity filter component combination. IP filter component should not be used with user or "
    "clientId filter component."
)


def describe_client_quotas(call: Call) -> Steps:
    """Answer with the quotas that the filter selects."""
    request, version = call.request, call.version
    if not call.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        call.answer(
            DescribeClientQuotasResponse(
                version=version, error_code=refused, error_message=None, entries=None
            )
        )
        return
    wrong = _wrong_filter(request.components)
    error, message = (ErrorCode.NONE, "") if wrong is None else wrong
    per_entity = DescribeClientQuotasResponse.EntryData
    entries: list[Any] = []
    for entity, values in call.image.client_quotas.items() if wrong is None else ():
        yield
        if _matches(entity, request):
            entries.append(
                per_entity(
                    version=version,
                    entity=[
                        per_entity.EntityData(version=version, entity_type=kind, entity_name=name)
                        for kind, name in entity
                    ],
                    values=[
                        per_entity.ValueData(version=version, key=key, value=value)
                        for key, value in values.items()
                    ],
                )
            )
    call.answer(
        DescribeClientQuotasResponse(
            version=version,
            error_code=error,
            error_message=shortened(message),
            entries=entries if wrong is None else None,
        )
    )


def _matches(entity: Entity, request: Any) -> bool:
    names = dict(entity)
    if request.strict and len(names) != len(request.components):
        return False
    return all(
        each.entity_type in names and (each.match_type == SPECIFIED or names[each.entity_type] == each.match)
        for each in request.components
    )


def _wrong_filter(components: Sequence[Any]) -> tuple[ErrorCode, str] | None:
    """Return why the components of a filter are refused, or None."""
    kinds = [component.entity_type for component in components]
    for place, component in enumerate(components):
        kind, how, what = component.entity_type, component.match_type, component.match
        if not kind:
            return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
        if kind in kinds[:place]:
            message = f"Entity type {kind} cannot appear more than once in the filter."
            return ErrorCode.INVALID_REQUEST, message
        if kind not in ENTITIES:
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        if how not in MATCHES:
            return ErrorCode.INVALID_REQUEST, f"Unknown match type {how}"
        if how == EXACT and what is None:
            message = "Request specified MATCH_TYPE_EXACT, but set match string to null."
            return ErrorCode.INVALID_REQUEST, message
        if how != EXACT and what is not None:
            message = f"Request specified {MATCHES[how]}, but also specified a match string."
            return ErrorCode.INVALID_REQUEST, message
    if IP in kinds and len(kinds) > 1:
        return ErrorCode.INVALID_REQUEST, IP_ALONE
    return None


def alter_client_quotas(call: Call) -> Steps:
    """Change quotas, and answer with the result of each entity.

    They are changed in one step, so more than CHANGES_MAX end the connection.
    """
    request = call.request
    number = sum(1 + len(entry.entity) + len(entry.ops) for entry in request.entries)
    if number > CHANGES_MAX:
        raise Garbage(f"{number} changes of quotas")
    changes = []
    for entry in request.entries:
        changes.append(
            QuotaChange(
                tuple(sorted({each.entity_type: each.entity_name for each in entry.entity}.items())),
                [(op.key, None if op.remove else op.value) for op in entry.ops],
            )
        )
        yield

    def refused(result: AdminResult) -> list[tuple[Entity, AdminResult]]:
        return list(dict.fromkeys([change.entity for change in changes], result).items())

    if not call.may(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        yield from _answer_altered(call, refused(AdminResult(code, MESSAGES[code])))
        return
    forward(
        call,
        lambda: call.cluster.quotas.alter(changes, bool(request.validate_only)),
        refused(NO_CONTROLLER),
        lambda results: call.run(_answer_altered(call, results)),
    )


def _answer_altered(call: Call, results: Sequence[tuple[Entity, AdminResult]]) -> Steps:
    version, per_entity = call.version, AlterClientQuotasResponse.EntryData
    entries = []
    for entity, result in results:
        entries.append(
            per_entity(
                version=version,
                error_code=result.error_code,
                error_message=message_of(result),
                entity=[
                    per_entity.EntityData(version=version, entity_type=kind, entity_name=name)
                    for kind, name in entity
                ],
            )
        )
        yield
    call.answer(AlterClientQuotasResponse(version=version, entries=entries))


APIS = (
    Api(48, DescribeClientQuotasRequest, (0, 1), describe_client_quotas),
    Api(49, AlterClientQuotasRequest, (0, 1), alter_client_quotas),
)
