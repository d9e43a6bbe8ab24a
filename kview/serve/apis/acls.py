"""DescribeAcls (29), CreateAcls (30) and DeleteAcls (31), each 1–3: who may do what.

v2 is flexible, v3 allows users by token. A broker describes the rules in its metadata, the controller creates
and deletes them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kafka.protocol.admin.acl import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

from kview.serve.apis.gather import ask_in_parts, forward, message_of
from kview.serve.call import Api, Call, Steps, shortened
from kview.serve.frames import Garbage
from kview.simulate.acls import Acl, AclFilter, AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.requests.acl_rules import only_for_filters
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.results import AdminResult

ACLS_PER_STEP = 64
FILTERS_MAX = 1_000
"""Limit of the filters in a request. Kafka has none."""
NO_AUTHORIZER_HERE = "No Authorizer is configured on the broker"
NO_AUTHORIZER = "No Authorizer is configured."


Selected = Sequence[Acl] | AdminResult
"""What a filter has selected, or why it has not."""


def _filter(entry: Any) -> AclFilter:
    return AclFilter(
        entry.resource_type_filter,
        entry.resource_name_filter,
        entry.pattern_type_filter,
        entry.principal_filter,
        entry.host_filter,
        entry.operation,
        entry.permission_type,
    )


def describe_acls(call: Call) -> Steps:
    """Answer with the rules that the filter selects. As in Kafka, a filter for what is unknown ends the
    connection."""
    wanted = _filter(call.request)
    if wanted.has_unknown:
        call.hang_up()
        return
    refused = _refused(call, AclOperation.DESCRIBE, NO_AUTHORIZER_HERE)
    resources: dict[tuple[int, str, int], list[Acl]] = {}
    for number, acl in enumerate(call.image.acls if refused is None else ()):
        if wanted.matches(acl):
            resources.setdefault((acl.resource, acl.name, acl.pattern), []).append(acl)
        if not number % ACLS_PER_STEP:
            yield
    version, per_resource = call.version, DescribeAclsResponse.DescribeAclsResource
    rows = []
    for (resource, name, pattern), acls in resources.items():
        rows.append(
            per_resource(
                version=version,
                resource_type=resource,
                resource_name=name,
                pattern_type=pattern,
                acls=[
                    per_resource.AclDescription(
                        version=version,
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ],
            )
        )
        yield
    call.answer(
        DescribeAclsResponse(
            version=version,
            error_code=ErrorCode.NONE if refused is None else refused.error_code,
            error_message="" if refused is None else refused.message,
            resources=rows,
        )
    )


def create_acls(call: Call) -> Steps:
    """Create rules, and answer with the result of each."""
    rules = []
    for number, each in enumerate(call.request.creations):
        rules.append(
            Acl(
                each.resource_type,
                each.resource_name,
                each.resource_pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
        )
        if not number % ACLS_PER_STEP:
            yield
    if any(rule.has_unknown for rule in rules):
        call.hang_up()
        return
    refused = _refused(call, AclOperation.ALTER, NO_AUTHORIZER)
    if refused is None and any(map(only_for_filters, rules)):
        refused = AdminResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    if refused is not None:
        yield from _answer_created(call, [refused] * len(rules))
        return

    def create(part: Sequence[Acl], done: Callable[[Sequence[AdminResult]], None]) -> None:
        forward(call, lambda: call.cluster.acls.create(part), [NO_CONTROLLER] * len(part), done)

    yield from ask_in_parts(rules, create, lambda rows: call.run(_answer_created(call, rows)))


def _answer_created(call: Call, results: Sequence[AdminResult]) -> Steps:
    version = call.version
    rows = []
    for number, result in enumerate(results):
        rows.append(
            CreateAclsResponse.AclCreationResult(
                version=version, error_code=result.error_code, error_message=message_of(result)
            )
        )
        if not number % ACLS_PER_STEP:
            yield
    call.answer(CreateAclsResponse(version=version, results=rows))


def delete_acls(call: Call) -> Steps:
    """Delete the rules that each filter selects, and answer with them. More filters or rules than a broker
    can work on end the connection."""
    if len(call.request.filters) > FILTERS_MAX:
        raise Garbage(f"{len(call.request.filters)} filters of ACLs")
    filters = [_filter(each) for each in call.request.filters]
    if any(each.has_unknown for each in filters):
        call.hang_up()
        return
    refused = _refused(call, AclOperation.ALTER, NO_AUTHORIZER)
    if refused is not None:
        yield from _answer_deleted(call, [refused] * len(filters))
        return
    late: Sequence[Selected] = [NO_CONTROLLER] * len(filters)
    selected = yield from call.cluster.acls.select(filters)
    if selected is None:
        raise Garbage("filters that select too many ACLs")

    def delete() -> Sequence[Selected]:
        call.cluster.acls.delete(rule for rules in selected if isinstance(rules, list) for rule in rules)
        return selected

    forward(call, delete, late, lambda results: call.run(_answer_deleted(call, results)))


def _answer_deleted(call: Call, results: Sequence[Selected]) -> Steps:
    version, per_filter = call.version, DeleteAclsResponse.DeleteAclsFilterResult
    rows = []
    for result in results:
        if isinstance(result, AdminResult):
            row = per_filter(
                version=version,
                error_code=result.error_code,
                error_message=message_of(result),
                matching_acls=[],
            )
            rows.append(row)
            continue
        matching = []
        for number, acl in enumerate(result):
            matching.append(
                per_filter.DeleteAclsMatchingAcl(
                    version=version,
                    error_code=ErrorCode.NONE,
                    error_message=None,
                    resource_type=acl.resource,
                    resource_name=acl.name,
                    pattern_type=acl.pattern,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
            )
            if not number % ACLS_PER_STEP:
                yield
        rows.append(
            per_filter(version=version, error_code=ErrorCode.NONE, error_message=None, matching_acls=matching)
        )
    call.answer(DeleteAclsResponse(version=version, filter_results=rows))


def _refused(call: Call, operation: AclOperation, no_authorizer: str) -> AdminResult | None:
    """Return why the client gets nothing, or None."""
    if not call.may(operation, ResourceType.CLUSTER):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return AdminResult(refused, shortened(MESSAGES[refused]))
    if call.cluster.authorizer is None:
        return AdminResult(ErrorCode.SECURITY_DISABLED, no_authorizer)
    return None


APIS = (
    Api(29, DescribeAclsRequest, (1, 3), describe_acls),
    Api(30, CreateAclsRequest, (1, 3), create_acls),
    Api(31, DeleteAclsRequest, (1, 3), delete_acls),
)
