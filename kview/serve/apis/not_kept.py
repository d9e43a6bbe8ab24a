"""DescribeAcls (29) 1–3, DescribeClientQuotas (48) 0–1, ListTransactions (66) 0–2: the answers of a cluster
without an authorizer, quotas and transactions.

DescribeAcls: v2 is flexible, v3 allows users by token. DescribeClientQuotas: v1 is flexible.
ListTransactions: v1 and v2 add filters. Left out on purpose: the APIs that create any of these, so that a
client learns from ApiVersions that they are not supported.
"""

from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
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


def list_transactions(call: Call) -> None:
    """Answer that there are no transactions, in whatever state."""
    unknown = [state for state in call.request.state_filters if state not in TRANSACTION_STATES]
    call.answer(
        ListTransactionsResponse(
            version=call.version,
            error_code=ErrorCode.NONE,
            unknown_state_filters=unknown,
            transaction_states=[],
        )
    )


TRANSACTION_STATES = (
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Empty",
    "PrepareEpochFence",
    "Dead",
)

APIS = (
    Api(29, DescribeAclsRequest, (1, 3), describe_acls),
    Api(48, DescribeClientQuotasRequest, (0, 1), describe_client_quotas),
    Api(66, ListTransactionsRequest, (0, 2), list_transactions),
)
