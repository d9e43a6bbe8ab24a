"""What a cluster without an authorizer, quotas and transactions answers when it is asked about them."""

from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    ListTransactionsRequest,
)

from tests.serve import questions as q
from tests.serve.both import Cluster

ANY = 1


def test_without_an_authorizer_acls_are_refused(cluster: Cluster) -> None:
    request = DescribeAclsRequest(
        version=3,
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answer = q.ask(cluster.leader, request, q.ANSWER_S)
    assert (answer.error_code, answer.error_message) == (54, "No Authorizer is configured on the broker")
    assert answer.resources == []


def test_there_are_no_quotas(cluster: Cluster) -> None:
    component = DescribeClientQuotasRequest.ComponentData(
        version=1, entity_type="client-id", match_type=2, match=None
    )
    request = DescribeClientQuotasRequest(version=1, components=[component], strict=False)
    answer = q.ask(cluster.leader, request, q.ANSWER_S)
    assert (answer.error_code, answer.entries) == (0, [])


def test_there_are_no_transactions(cluster: Cluster) -> None:
    request = ListTransactionsRequest(version=1, state_filters=["Ongoing", "Asleep"], producer_id_filters=[])
    answer = q.ask(cluster.leader, request, q.ANSWER_S)
    assert (answer.error_code, answer.unknown_state_filters) == (0, ["Asleep"])
    assert answer.transaction_states == []
