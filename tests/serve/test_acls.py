"""A cluster with an authorizer on the wire: what a request may ask for, and how often rules are looked up."""

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DeleteAclsResponse
from kafka.protocol.consumer import FetchRequest, HeartbeatRequest, JoinGroupRequest, SyncGroupRequest

from kview.serve.apis.acls import FILTERS_MAX
from kview.simulate.acls import ANY, Acl, AclOperation, Acls, PatternType, Permission, ResourceType
from kview.simulate.authorizer import Authorizer
from kview.simulate.requests.acl_rules import RULES_PER_STEP
from kview.simulate.settings import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import TOPIC, cluster_of, go

RULES = [
    Acl(ResourceType.TOPIC, f"t-{n}", PatternType.LITERAL, "User:a", "*", AclOperation.READ, Permission.ALLOW)
    for n in range(1_500)
]


@pytest.fixture
def wire() -> Unwired:
    """A cluster with an authorizer, and `User:root`, who may do everything."""
    return Unwired(cluster_of(settings={AUTHORIZER: STANDARD_AUTHORIZER, SUPER_USERS: "User:root"}))


def root() -> UnwiredClient:
    client = UnwiredClient(0)
    client.principal = "User:root"
    return client


def deletion(number: int) -> Any:
    """A request with filters that each select all rules."""
    fields = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    names = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    one = DeleteAclsRequest.DeleteAclsFilter(version=3, **dict.fromkeys(fields, ANY), **names)
    return DeleteAclsRequest(version=3, filters=[one] * number)


def test_rules_are_created_and_deleted_in_small_steps(wire: Unwired) -> None:
    client = root()
    creations = [
        CreateAclsRequest.AclCreation(
            version=3,
            resource_type=rule.resource,
            resource_name=rule.name,
            resource_pattern_type=rule.pattern,
            principal=rule.principal,
            host=rule.host,
            operation=rule.operation,
            permission_type=rule.permission,
        )
        for rule in RULES
    ]
    wire.ask(client, CreateAclsRequest(version=3, creations=creations))
    go(wire.cluster, 1)
    assert list(wire.cluster.image(0).acls) == RULES
    client.steps = 0
    wire.ask(client, deletion(2))
    assert client.steps >= 2 * len(RULES) / RULES_PER_STEP
    go(wire.cluster, 1)
    assert not wire.cluster.image(0).acls
    answer = client.answers[-1]
    assert answer is not None
    rows = DeleteAclsResponse.decode(answer[9:], version=3).filter_results
    assert [len(row.matching_acls) for row in rows] == [len(RULES)] * 2


@pytest.mark.parametrize(("number", "ends"), [(FILTERS_MAX, False), (FILTERS_MAX + 1, True)])
def test_too_many_filters_end_the_connection(wire: Unwired, number: int, ends: bool) -> None:
    client = root()
    wire.ask(client, deletion(number))
    go(wire.cluster, 1)
    assert client.closed is ends and len(client.answers) == (not ends)


def members() -> Iterator[Any]:
    """Requests of a member."""
    group: dict[str, Any] = {"group_id": "g", "member_id": "m", "generation_id": 1}
    yield HeartbeatRequest(version=3, group_instance_id=None, **group)
    yield SyncGroupRequest(version=3, group_instance_id=None, assignments=[], **group)
    del group["generation_id"]
    times = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    protocol = {"protocol_type": "consumer", "protocols": []}
    yield JoinGroupRequest(version=5, group_instance_id=None, **group, **times, **protocol)


@pytest.mark.parametrize("request_", list(members()), ids=lambda request: type(request).__name__)
def test_who_may_not_be_a_member_is_not_noted_as_one(wire: Unwired, request_: Any) -> None:
    client, allowed = UnwiredClient(0), root()
    for each in (client, allowed):
        wire.ask(each, request_)
    assert client.member is None and len(client.answers) == 1
    assert allowed.member == ("g", "m")


class Asked(Authorizer):
    """Counts how often it is asked."""

    times = 0

    def allows(self, *about: Any) -> bool:
        self.times += 1
        return super().allows(*about)


def test_a_fetch_asks_once_about_each_topic(wire: Unwired) -> None:
    asked = wire.cluster.authorizer = Asked(frozenset({"User:root"}), False)
    per_topic = FetchRequest.FetchTopic
    partitions = [
        per_topic.FetchPartition(
            version=5, partition=n, fetch_offset=0, log_start_offset=-1, partition_max_bytes=1
        )
        for n in range(100)
    ]
    topics = [per_topic(version=5, topic=TOPIC, partitions=partitions)]
    request = FetchRequest(
        version=5, max_wait_ms=0, min_bytes=1, max_bytes=1, isolation_level=0, topics=topics
    )
    wire.ask(root(), request)
    assert asked.times == 1


def test_whether_any_resource_is_allowed_asks_only_about_rules_for_the_client() -> None:
    asked = Asked(frozenset(), False)
    assert not asked.allows_any(Acls(RULES), "User:b", "h", AclOperation.READ, ResourceType.TOPIC)
    assert asked.times == 1
