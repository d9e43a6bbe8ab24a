"""DescribeAcls (29) 1–3, DescribeClientQuotas (48) 0–1: the answers of a cluster without an authorizer and
quotas.

DescribeAcls: v2 is flexible, v3 allows users by token. DescribeClientQuotas: v1 is flexible. Left out on
purpose: the APIs that create any of these, so that a client learns from ApiVersions that they are not
supported.
"""

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

from kview.serve.call import Api, Call, shortened
from kview.simulate.codes import ErrorCode

EXACT, IP = 0, "ip"
ENTITIES = ("user", "client-id", IP)
MATCHES = {EXACT: "MATCH_TYPE_EXACT", 1: "MATCH_TYPE_DEFAULT", 2: "MATCH_TYPE_SPECIFIED"}
IP_ALONE = (
    "Invalid entity filter component combination. IP filter component should not be used with user or "
    "clientId filter component."
)


def describe_client_quotas(call: Call) -> None:
    """Answer that there are no quotas."""
    wrong = _wrong_filter(call.request.components)
    error, message = (ErrorCode.NONE, "") if wrong is None else wrong
    call.answer(
        DescribeClientQuotasResponse(
            version=call.version,
            error_code=error,
            error_message=shortened(message),
            entries=[] if wrong is None else None,
        )
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


APIS = (Api(48, DescribeClientQuotasRequest, (0, 1), describe_client_quotas),)
