"""DescribeAcls (29) 1–3, DescribeClientQuotas (48) 0–1: the answers of a cluster without an authorizer and
quotas.

DescribeAcls: v2 is flexible, v3 allows users by token. DescribeClientQuotas: v1 is flexible. Left out on
purpose: the APIs that create any of these, so that a client learns from ApiVersions that they are not
supported.
"""

from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode


def describe_acls(call: Call) -> None:
    """Answer that no authorizer is configured."""
    call.answer(
        DescribeAclsResponse(
            version=call.version,
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
            resources=[],
        )
    )


def describe_client_quotas(call: Call) -> None:
    """Answer that there are no quotas."""
    call.answer(
        DescribeClientQuotasResponse(
            version=call.version, error_code=ErrorCode.NONE, error_message=None, entries=[]
        )
    )


APIS = (
    Api(29, DescribeAclsRequest, (1, 3), describe_acls),
    Api(48, DescribeClientQuotasRequest, (0, 1), describe_client_quotas),
)
