"""Look-ups with odd keys and filters: the simulated and a real cluster answer the same.

Read from Apache Kafka 4.3.1.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from kview.simulate.codes import MESSAGES, ErrorCode
from tests.real_kafka.asking import ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.waiting import wait_until

FIRST, SECOND = "look-up-1", "look-up-2"
SOME_ID = UUID(int=9)
TOPIC_OPERATIONS = 0b1101_1111_1000
NOT_ASKED = -(1 << 31)
MALFORMED = MESSAGES[ErrorCode.INVALID_REQUEST]
NO_TOPIC = MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
BAD_NAME = (
    "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' "
    "and '-'"
)


def topics(version: int, *entries: tuple[str | None, UUID | str | None]) -> Callable[[Cluster], Any]:
    """Ask for topics by name and id, where a string is the topic that has it. Returns the number of brokers,
    and each topic's name, whether it has that id, error number and number of partitions."""

    def asked(cluster: Cluster) -> Any:
        kind = MetadataRequest.MetadataRequestTopic
        ids = [q.topic_id(cluster.leader, of) if isinstance(of, str) else of for _, of in entries]
        named = [
            kind(version=version, name=name, topic_id=topic_id)
            for (name, _), topic_id in zip(entries, ids, strict=True)
        ]
        request = MetadataRequest(version=version, topics=named, allow_auto_topic_creation=False)
        answer = ask(cluster.leader, request)
        rows = [(t.name, t.topic_id in ids, t.error_code, len(t.partitions)) for t in answer.topics]
        return len(answer.brokers), rows

    return asked


def coordinator(version: int, kind: int) -> Callable[[Cluster], Any]:
    """Return the error number and message of FindCoordinator."""
    request = FindCoordinatorRequest(version=version, key="g", key_type=kind, coordinator_keys=["g"])

    def asked(cluster: Cluster) -> Any:
        wait_until(lambda: q.find_coordinator(cluster.leader, "g")[0] == 0, "there is a coordinator")
        answer = ask(cluster.leader, request)
        row = answer if version < 4 else answer.coordinators[0]
        return row.error_code, row.error_message

    return asked


def aborted(version: int, isolation: int, topic: str, offset: int = 0) -> Callable[[Cluster], Any]:
    """Return the error number of a fetch, and its aborted transactions."""
    kind = FetchRequest.FetchTopic
    partition = kind.FetchPartition(
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1000,
    )
    request = FetchRequest(
        version=version,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1000,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        forgotten_topics_data=[],
        rack_id="",
        topics=[kind(topic=topic, partitions=[partition])],
    )

    def asked(cluster: Cluster) -> Any:
        row = ask(cluster.leader, request).responses[0].partitions[0]
        return row.error_code, row.aborted_transactions

    return asked


def latest(*entries: tuple[str, Sequence[int]]) -> Callable[[Cluster], Any]:
    """Return (partition, error number) of the latest offsets, by topic."""
    kind = ListOffsetsRequest.ListOffsetsTopic
    named = [
        kind(
            name=name,
            partitions=[
                kind.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=-1)
                for index in indexes
            ],
        )
        for name, indexes in entries
    ]
    request = ListOffsetsRequest(version=7, replica_id=-1, isolation_level=0, topics=named)

    def asked(cluster: Cluster) -> Any:
        answer = ask(cluster.leader, request)
        rows = {t.name: [(p.partition_index, p.error_code) for p in t.partitions] for t in answer.topics}
        return {name: sorted(of_topic) for name, of_topic in rows.items()}

    return asked


def quotas(*components: tuple[str, int, str | None]) -> Callable[[Cluster], Any]:
    """Return the error number and message of DescribeClientQuotas, and the entries."""
    kind = DescribeClientQuotasRequest.ComponentData
    asked = [kind(entity_type=entity, match_type=how, match=what) for entity, how, what in components]
    request = DescribeClientQuotasRequest(version=1, components=asked, strict=False)

    def answered(cluster: Cluster) -> Any:
        answer = ask(cluster.leader, request)
        return answer.error_code, answer.error_message, answer.entries

    return answered


def acls(kind: int, pattern: int, operation: int, permission: int) -> Callable[[Cluster], int | None]:
    """Return the error number of DescribeAcls, or None if the connection ends."""
    request = DescribeAclsRequest(
        version=1,
        resource_type_filter=kind,
        resource_name_filter=None,
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=operation,
        permission_type=permission,
    )

    def answered(cluster: Cluster) -> int | None:
        try:
            return int(ask(cluster.leader, request).error_code)
        except ConnectionResetError:
            return None

    return answered


def transaction(cluster: Cluster) -> Any:
    """Return all that is said about a transactional id that does not exist."""
    name = "look-ups"
    wait_until(lambda: q.find_coordinator(cluster.leader, name, 1)[0] == 0, "there is a coordinator")
    address = cluster.at(q.find_coordinator(cluster.leader, name, 1)[1])
    request = DescribeTransactionsRequest(version=0, transactional_ids=[name])

    def row() -> Any:
        return ask(address, request).transaction_states[0]

    not_yet = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    wait_until(lambda: row().error_code not in not_yet, "it has loaded")
    found = row()
    return (
        found.error_code,
        found.transaction_state,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms,
        found.producer_id,
        found.producer_epoch,
        found.topics,
    )


def unknown_states(cluster: Cluster) -> Any:
    request = ListTransactionsRequest(
        version=0, state_filters=["Lost", "Lost", "Empty"], producer_id_filters=[]
    )
    return ask(cluster.leader, request).unknown_state_filters


def operations(*names: str, cursor: tuple[str, int] | None = None) -> Callable[[Cluster], Any]:
    """Return the error numbers and operations of DescribeTopicPartitions."""

    def asked(cluster: Cluster) -> Any:
        rows = q.topic_partitions(cluster.leader, names, cursor).topics
        return [(row.error_code, row.topic_authorized_operations) for row in rows]

    return asked


Row = tuple[str, Callable[[Cluster], Any], Any]

METADATA: list[Row] = [
    ("Metadata v10 by id", topics(10, (FIRST, FIRST)), (0, [(FIRST, True, 42, 0)])),
    (
        "Metadata v11 without a name",
        topics(11, (FIRST, None), ("", SOME_ID)),
        (0, [(FIRST, True, 42, 0), ("", True, 42, 0)]),
    ),
    ("Metadata v12 by name and id", topics(12, (SECOND, FIRST)), (3, [(FIRST, True, 0, 1)])),
    ("Metadata v12 by name and no id", topics(12, (FIRST, SOME_ID)), (3, [(None, True, 100, 0)])),
    ("Metadata v12 by name or id", topics(12, (None, FIRST), (SECOND, None)), (3, [(FIRST, True, 0, 1)])),
    ("Metadata v12 by nothing", topics(12, (None, None)), (0, [("", True, -1, 0)])),
    ("Metadata v12 twice", topics(12, (FIRST, None), (FIRST, None)), (3, [(FIRST, False, 0, 1)])),
]

COORDINATORS: list[Row] = [
    ("FindCoordinator v0", coordinator(0, 0), (0, "")),
    ("FindCoordinator v3", coordinator(3, 0), (0, "NONE")),
    ("FindCoordinator v4", coordinator(4, 0), (0, "")),
    ("FindCoordinator v3 of type 7", coordinator(3, 7), (42, MALFORMED)),
    ("FindCoordinator v6 of type 7", coordinator(6, 7), (42, MALFORMED)),
]

READING: list[Row] = [
    ("Fetch, no topic", aborted(11, 0, "nobodys-topic"), (3, [])),
    ("Fetch v12, no topic", aborted(12, 0, "nobodys-topic"), (3, [])),
    ("Fetch beyond the end, committed", aborted(11, 1, FIRST, 999), (1, None)),
    ("Fetch committed", aborted(11, 1, FIRST), (0, [])),
    ("Fetch uncommitted", aborted(12, 0, FIRST), (0, None)),
    ("ListOffsets of a partition twice", latest((FIRST, [0, 0, 1])), {FIRST: [(0, 42), (1, 3)]}),
    ("ListOffsets of a topic twice", latest((FIRST, [0]), (FIRST, [0])), {FIRST: [(0, 42)]}),
    ("ListOffsets of nothing", latest((FIRST, [])), {}),
    ("ListOffsets of no topic twice", latest(("none", [0, 0])), {"none": [(0, 42)]}),
]

QUOTAS: list[Row] = [
    ("Quotas", quotas(("user", 2, None), ("client-id", 1, None)), (0, "", [])),
    ("Quotas of some", quotas(("some", 0, "x")), (35, "Unsupported entity type some", None)),
    ("Quotas of nothing", quotas(("", 2, None)), (42, "Invalid empty entity type.", None)),
    (
        "Quotas twice",
        quotas(("user", 2, None), ("user", 2, None)),
        (42, "Entity type user cannot appear more than once in the filter.", None),
    ),
    ("Quotas, match 9", quotas(("user", 9, None)), (42, "Unknown match type 9", None)),
    (
        "Quotas, exactly null",
        quotas(("user", 0, None)),
        (42, "Request specified MATCH_TYPE_EXACT, but set match string to null.", None),
    ),
    (
        "Quotas, any x",
        quotas(("user", 2, "x")),
        (42, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.", None),
    ),
    (
        "Quotas, default x",
        quotas(("user", 1, "x")),
        (42, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.", None),
    ),
    (
        "Quotas of users with addresses",
        quotas(("ip", 2, None), ("user", 2, None)),
        (
            42,
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component.",
            None,
        ),
    ),
]

OTHERS: list[Row] = [
    ("ACLs", acls(1, 3, 1, 1), 54),
    ("ACLs of type 99", acls(99, 3, 1, 1), 54),
    ("ACLs of type 0", acls(0, 3, 1, 1), None),
    ("ACLs of pattern 0", acls(1, 0, 1, 1), None),
    ("ACLs of operation 0", acls(1, 3, 0, 1), None),
    ("ACLs of permission 0", acls(1, 3, 1, 0), None),
    ("DescribeTransactions of none", transaction, (105, "", 0, 0, 0, 0, [])),
    ("ListTransactions of unknown states", unknown_states, ["Lost"]),
    (
        "DescribeTopicPartitions",
        operations("a b", FIRST, "none"),
        [(17, TOPIC_OPERATIONS), (0, TOPIC_OPERATIONS), (3, TOPIC_OPERATIONS)],
    ),
    ("DescribeTopicPartitions, wrong cursor", operations(FIRST, cursor=("zz", 0)), [(42, NOT_ASKED)]),
    ("DescribeProducers", lambda c: q.producers_refused(c.leader, FIRST, 0), (0, None)),
    ("DescribeProducers of no topic", lambda c: q.producers_refused(c.leader, "none", 0), (3, NO_TOPIC)),
    ("DescribeProducers of no partition", lambda c: q.producers_refused(c.leader, FIRST, 7), (3, None)),
    ("DescribeProducers of a bad name", lambda c: q.producers_refused(c.leader, "a b", 0), (17, BAD_NAME)),
]

ROWS = [*METADATA, *COORDINATORS, *READING, *QUOTAS, *OTHERS]


@pytest.mark.parametrize(("asked", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_look_up_is_answered_as_by_kafka(
    cluster: Cluster, asked: Callable[[Cluster], Any], expected: Any
) -> None:
    for topic in (FIRST, SECOND):
        cluster.create(topic, [[0, 1]])
    assert asked(cluster) == expected
