"""Access control lists: which rules a filter selects, and what rules allow."""

import pytest

from kview.simulate.acls import (
    ANY,
    OPERATIONS,
    Acl,
    AclFilter,
    AclOperation,
    Acls,
    PatternType,
    Permission,
    ResourceType,
)
from kview.simulate.authorizer import Authorizer
from kview.simulate.cluster import Cluster
from kview.simulate.requests.acl_rules import RULES_MAX, SELECTED_MAX, TEXT_MAX
from kview.simulate.settings import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS, Settings
from tests.simulate.engine import cluster_of, go

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
ALICE, HOST = "User:alice", "127.0.0.1"


def rule(
    name: str,
    operation: int = READ,
    permission: int = ALLOW,
    pattern: int = LITERAL,
    principal: str = ALICE,
    host: str = "*",
    resource: int = TOPIC,
) -> Acl:
    return Acl(resource, name, pattern, principal, host, operation, permission)


def selected(cluster: Cluster, *filters: AclFilter) -> object:
    """What filters select, without the steps in between."""
    steps = cluster.acls.select(filters)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def may(rules: list[Acl], operation: AclOperation = READ, name: str = "orders", opened: bool = False) -> bool:
    authorizer = Authorizer(frozenset({"User:root"}), opened)
    return authorizer.allows(Acls(rules), ALICE, HOST, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([rule("orders")], True),
        ([rule("order")], False),
        ([rule("order", pattern=PREFIXED)], True),
        ([rule("orders", pattern=PREFIXED)], True),
        ([rule("ordersx", pattern=PREFIXED)], False),
        ([rule("*")], True),
        ([rule("*", pattern=PREFIXED)], False),
        ([rule("orders", principal="User:*")], True),
        ([rule("orders", principal="User:bob")], False),
        ([rule("orders", host=HOST)], True),
        ([rule("orders", host="10.0.0.1")], False),
        ([rule("orders", operation=WRITE)], False),
        ([rule("orders", operation=ALL)], True),
        ([rule("orders", resource=GROUP)], False),
        ([rule("orders"), rule("*", permission=DENY)], False),
        ([rule("*"), rule("ord", permission=DENY, pattern=PREFIXED)], False),
        ([rule("*"), rule("orders", permission=DENY, principal="User:bob")], True),
    ],
)
def test_rules_allow_what_kafkas_authorizer_allows(rules: list[Acl], allowed: bool) -> None:
    assert may(rules) is allowed


@pytest.mark.parametrize("operation", list(AclOperation))
def test_operations_imply_describe_and_describe_configs_if_they_allow(operation: AclOperation) -> None:
    implies = operation in (ALL, READ, WRITE, DESCRIBE, AclOperation.DELETE, AclOperation.ALTER)
    assert may([rule("orders", operation)], DESCRIBE) is implies
    configs = operation in (ALL, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    assert may([rule("orders", operation)], AclOperation.DESCRIBE_CONFIGS) is configs
    denied = [rule("orders", DESCRIBE), rule("orders", operation, DENY)]
    assert may(denied, DESCRIBE) is (operation not in (ALL, DESCRIBE))


def test_a_resource_without_rules_may_be_open() -> None:
    assert may([], opened=True)
    assert may([rule("payments")], opened=True)
    assert not may([rule("orders", principal="User:bob")], opened=True)


def test_super_users_may_do_everything() -> None:
    denied = Acls([rule("*", ALL, DENY, principal="User:*")])
    authorizer = Authorizer(frozenset({"User:root"}), False)
    assert authorizer.allows(denied, "User:root", HOST, WRITE, TOPIC, "orders")


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([rule("orders", WRITE)], True),
        ([rule("orders", READ)], False),
        ([rule("orders", WRITE), rule("orders", WRITE, DENY)], False),
        ([rule("*", WRITE), rule("orders", WRITE, DENY)], True),
        ([rule("orders", WRITE), rule("*", WRITE, DENY)], False),
        ([rule("ord", WRITE, pattern=PREFIXED)], True),
    ],
)
def test_whether_any_topic_may_be_written_to(rules: list[Acl], allowed: bool) -> None:
    authorizer = Authorizer(frozenset(), False)
    assert authorizer.allows_any(Acls(rules), ALICE, HOST, WRITE, TOPIC) is allowed


def test_settings_say_whether_there_is_an_authorizer() -> None:
    assert Authorizer.of(Settings({})) is None
    users = {AUTHORIZER: STANDARD_AUTHORIZER, SUPER_USERS: "User:a; User:CN=b,O=c"}
    authorizer = Authorizer.of(Settings(users))
    assert authorizer is not None
    assert authorizer.allows(Acls(), "User:CN=b,O=c", HOST, READ, TOPIC, "t")


KEPT = [
    rule("orders"),
    rule("ord", pattern=PREFIXED),
    rule("*", WRITE),
    rule("orders", DESCRIBE, DENY, principal="User:bob", host=HOST),
    rule("readers", resource=GROUP),
]


@pytest.mark.parametrize(
    ("wanted", "selected"),
    [
        (AclFilter(ANY, None, ANY, None, None, ANY, ANY), [0, 1, 2, 3, 4]),
        (AclFilter(TOPIC, "orders", LITERAL, None, None, ANY, ANY), [0, 3]),
        (AclFilter(TOPIC, "orders", PatternType.MATCH, None, None, ANY, ANY), [0, 1, 2, 3]),
        (AclFilter(TOPIC, "orders", ANY, None, None, ANY, ANY), [0, 3]),
        (AclFilter(TOPIC, None, PREFIXED, None, None, ANY, ANY), [1]),
        (AclFilter(ANY, None, ANY, "User:bob", None, ANY, ANY), [3]),
        (AclFilter(ANY, None, ANY, None, "*", READ, ALLOW), [0, 1, 4]),
    ],
)
def test_filters_select_rules(wanted: AclFilter, selected: list[int]) -> None:
    assert [number for number, acl in enumerate(KEPT) if wanted.matches(acl)] == selected


def test_rules_are_metadata_and_have_limits() -> None:
    cluster = cluster_of()
    results = cluster.acls.create([*KEPT, KEPT[0], rule("x" * (TEXT_MAX + 1)), rule("", READ)])
    assert [result.error_code for result in results] == [0] * 6 + [42, 42]
    cluster.faults.crash_controller()
    go(cluster, 20)
    assert all(list(cluster.image(b).acls) == KEPT for b in cluster.broker_ids())
    bob = AclFilter(ANY, None, ANY, "User:bob", None, ANY, ANY)
    assert selected(cluster, bob, bob) == [[KEPT[3]], [KEPT[3]]]
    cluster.acls.delete([KEPT[3]])
    many = [rule(f"topic-{number}") for number in range(RULES_MAX)]
    codes = [int(result.error_code) for result in cluster.acls.create(many)]
    assert codes.count(0) == RULES_MAX - len(KEPT) + 1 and set(codes) == {0, 42}
    everything = AclFilter(ANY, None, ANY, None, None, ANY, ANY)
    assert selected(cluster, *[everything] * (SELECTED_MAX // RULES_MAX + 1)) is None


def test_kinds_of_resources_have_kafkas_operations() -> None:
    numbers = {kind.name: sorted(map(int, each)) for kind, each in OPERATIONS.items()}
    assert numbers == {
        "TOPIC": [3, 4, 5, 6, 7, 8, 10, 11],
        "GROUP": [3, 6, 8, 10, 11],
        "CLUSTER": [5, 7, 8, 9, 10, 11, 12],
    }
