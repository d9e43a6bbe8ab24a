"""Requests of every API by a user with few rights: the simulated cluster refuses what a real one refuses."""

import math
import random
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeGroupsRequest,
    DescribeTopicPartitionsRequest,
    DescribeUserScramCredentialsRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kview.serve import apis
from kview.serve.call import Api
from kview.wire.group_messages import DescribeShareGroupOffsetsRequest, StreamsGroupDescribeRequest
from kview.wire.member_messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.real_kafka.asking import Address
from tests.real_kafka.secured import NOBODY, NOBODYS_PASSWORD, PASSWORD, SESSION_MS, USER, SecuredKafka
from tests.serve import questions as q
from tests.serve.examples import Examples
from tests.serve.secured import ADMIN, ALICE, WAIT_S, Client, SecuredServed
from tests.serve.test_same_answers import LAST, LEFT_OUT, OF_SHARE_GROUPS, SHARES, STREAMS, USUAL, common
from tests.serve.test_streams_groups import info, subtopology, topology
from tests.served import QUICK_TIMES
from tests.waiting import wait_until

TOPICS = ("same-1", "same-2")
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
READ, CREATE, DELETE, DESCRIBE = 3, 5, 6, 8
LITERAL, PREFIXED = 3, 4
ALLOW = 3
REFUSED = 29
GRANTED = (
    (TOPIC, "same-2", LITERAL, READ),
    (TOPIC, "same-1", LITERAL, DESCRIBE),
    (TOPIC, "same-log", LITERAL, DESCRIBE),
    (TOPIC, "mine-", PREFIXED, CREATE),
    (TOPIC, "mine-", PREFIXED, DELETE),
    (GROUP, "same-", PREFIXED, DESCRIBE),
    (GROUP, SHARES, LITERAL, READ),
    (GROUP, STREAMS, LITERAL, READ),
    (GROUP, SHARES, LITERAL, DELETE),
    (TRANSACTIONAL_ID, "same-", PREFIXED, DESCRIBE),
    (CLUSTER, "kafka-cluster", LITERAL, DESCRIBE),
)
"""What the user may do in the second round of questions."""

CHANGES = {33, 44, 45, 37, 43}
"""APIs whose error message is a long description of an object of Java."""


class Side:
    """One of the two clusters, of one broker, and how to ask as the user with few rights."""

    def __init__(self, address: Address, admin: tuple[str, str], user: tuple[str, str]) -> None:
        self.address = address
        self.admin = admin
        self.user = user
        self._granted = False
        self.as_admin: Any = partial(self.ask, admin)
        for name in TOPICS:
            q.create_topic(self.as_admin, name, validate_only=False)
            wait_until(partial(self._knows, name), "the topic is known")
        wait_until(self._has_coordinator, "a coordinator")
        wait_until(self._has_share_coordinator, "a share coordinator")
        wait_until(lambda: q.delete_groups(self.as_admin, ["none"]) == [69], "the groups are loaded")
        self.topics = [(name, q.topic_id(self.as_admin, name).bytes) for name in TOPICS]

    def _knows(self, topic: str) -> bool:
        return q.metadata(self.as_admin, topic) == 0

    def _has_coordinator(self) -> bool:
        return q.find_coordinator(self.as_admin, USUAL["group_id"], 0)[0] == 0

    def _has_share_coordinator(self) -> bool:
        topic_id = urlsafe_b64encode(q.topic_id(self.as_admin, TOPICS[0]).bytes).decode().rstrip("=")
        return q.find_coordinator(self.as_admin, f"{SHARES}:{topic_id}:0", 2)[0] == 0

    def ask(self, who: tuple[str, str], request: Any, timeout_s: float = 0.0) -> Any:
        with Client(self.address) as client:
            answer = client.plain(*who)
            assert not answer.error_code, answer
            return client.send(request)

    def let(self, granted: bool) -> None:
        """Let the user do what is GRANTED, or nothing at all."""
        if granted is self._granted:
            return
        self._granted = granted
        principal = f"User:{self.user[0]}"
        if granted:
            rules = [creation(kind, name, pattern, principal, op) for kind, name, pattern, op in GRANTED]
            for rule in rules:
                assert self.as_admin(rule).results[0].error_code == 0
        else:
            self.as_admin(deletion(principal=principal))
        as_user: Any = partial(self.ask, self.user)
        wait_until(lambda: q.metadata(as_user, "same-1") == (0 if granted else REFUSED), "the rules count")

    def answer(self, api: Api, version: int, now_ms: int) -> Any:
        usual = USUAL | (OF_SHARE_GROUPS if api.key in range(76, 93) else {})
        examples = Examples(random.Random(f"{api.key}/{version}"), now_ms, self.topics, usual=usual)
        try:
            answer = self.ask(self.user, examples.request(api, version))
        except ConnectionResetError:
            return "closed"
        return without_messages(common(answer.to_dict()))


def without_messages(value: Any) -> Any:
    """Return an answer without the messages that print an object of Java."""
    if isinstance(value, dict):
        return {
            name: "…" if name == "error_message" and field else without_messages(field)
            for name, field in value.items()
        }
    return [without_messages(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def sides(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    java, jars = kafka_runtime
    one = (
        "offsets.topic.num.partitions=1",
        "transaction.state.log.num.partitions=1",
        "share.coordinator.state.topic.num.partitions=1",
    )
    flags = ("--no-traffic", "--brokers", "1", "--racks", "1")
    with (
        SecuredServed(
            "sasl_plaintext:plain",
            *flags,
            settings=(*QUICK_TIMES, *one, f"connections.max.reauth.ms={SESSION_MS}"),
        ) as served,
        SecuredKafka(tmp_path_factory.mktemp("refusals"), java, jars) as kafka,
    ):
        real = Side(kafka.address("SP"), (USER, PASSWORD), (NOBODY, NOBODYS_PASSWORD))
        simulated = Side(served.addresses[0], (ADMIN, served.password()), (ALICE, served.password(ALICE)))
        yield real, simulated


ORDER = sorted(apis.all_apis().values(), key=lambda api: (LAST.get(api.key, 0), api.key))
ASKED = [
    (granted, api, version)
    for granted in (False, True)
    for api in ORDER
    if api.key not in LEFT_OUT.keys() - {11, 16, 26, 47, 55, 80, 81}
    for version in range(api.versions[0], api.versions[1] + 1)
    if version in (api.versions[0], api.versions[1])
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("granted", "api", "version"),
    ASKED,
    ids=[f"{api.request.__name__} v{v}{' granted' * granted}" for granted, api, v in ASKED],
)
def test_a_user_with_few_rights_is_refused_alike(
    sides: tuple[Side, Side], granted: bool, api: Api, version: int
) -> None:
    real, simulated = sides
    for side in sides:
        side.let(granted)
    now_ms = round(time.time() * 1000)
    assert simulated.answer(api, version, now_ms) == real.answer(api, version, now_ms)


def creation(
    resource: int = TOPIC,
    name: str = "alike",
    pattern: int = LITERAL,
    principal: str = "User:dave",
    operation: int = READ,
    permission: int = ALLOW,
) -> Any:
    return CreateAclsRequest(
        version=3,
        creations=[
            CreateAclsRequest.AclCreation(
                version=3,
                resource_type=resource,
                resource_name=name,
                resource_pattern_type=pattern,
                principal=principal,
                host="*",
                operation=operation,
                permission_type=permission,
            )
        ],
    )


def description(resource: int = 1, name: str | None = None, pattern: int = 1, operation: int = 1) -> Any:
    return DescribeAclsRequest(
        version=3,
        resource_type_filter=resource,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter="User:dave",
        host_filter=None,
        operation=operation,
        permission_type=1,
    )


def deletion(
    resource: int = 1,
    name: str | None = None,
    pattern: int = 1,
    operation: int = 1,
    principal: str = "User:dave",
) -> Any:
    each = DeleteAclsRequest.DeleteAclsFilter(
        version=3,
        resource_type_filter=resource,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter=None,
        operation=operation,
        permission_type=1,
    )
    return DeleteAclsRequest(version=3, filters=[each])


def upsertion(*users: tuple[str, int, int]) -> Any:
    per_user = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    upsertions = [
        per_user(
            version=0,
            name=name,
            mechanism=mechanism,
            iterations=iterations,
            salt=b"salt",
            salted_password=b"p" * 32,
        )
        for name, mechanism, iterations in users
    ]
    return AlterUserScramCredentialsRequest(version=0, deletions=[], upsertions=upsertions)


def scram_deletion(*users: tuple[str, int]) -> Any:
    per_user = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    deletions = [per_user(version=0, name=name, mechanism=mechanism) for name, mechanism in users]
    return AlterUserScramCredentialsRequest(version=0, deletions=deletions, upsertions=[])


def scram_description(*users: str) -> Any:
    per_user = DescribeUserScramCredentialsRequest.UserName
    return DescribeUserScramCredentialsRequest(
        version=0, users=[per_user(version=0, name=name) for name in users]
    )


def features(*updates: tuple[str, int, int], version: int = 2) -> Any:
    """Check updates of features: (name, level, kind of change)."""
    per_feature = UpdateFeaturesRequest.FeatureUpdateKey
    keys = [
        per_feature(version=version, feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    return UpdateFeaturesRequest(
        version=version, timeout_ms=q.TIMEOUT_MS, feature_updates=keys, validate_only=True
    )


GROUPS, TRANSACTIONS, METADATA = "group.version", "transaction.version", "metadata.version"
FEATURES = {
    f"features {updates} v{version}": features(*updates, version=version)
    for version in (1, 2)
    for updates in (
        (),
        (("nobodys.version", 1, 1),),
        (("nobodys.version", 0, 1),),
        ((GROUPS, 1, 1),),
        ((GROUPS, 0, 1),),
        ((GROUPS, 0, 2),),
        ((GROUPS, 0, 3),),
        ((GROUPS, 0, 4),),
        ((GROUPS, 2, 1),),
        ((GROUPS, -1, 1),),
        ((METADATA, 31, 1),),
        ((METADATA, 29, 1),),
        ((METADATA, 29, 2),),
        ((METADATA, 29, 3),),
        (("kraft.version", 0, 2),),
        ((GROUPS, 0, 2), (TRANSACTIONS, 1, 2)),
        ((TRANSACTIONS, 1, 2), (GROUPS, 7, 2)),
    )
}

Ops = tuple[tuple[str, float | None], ...]


def quotas(*entries: tuple[tuple[tuple[str, str | None], ...], Ops], validate_only: bool = False) -> Any:
    """Set quotas of entities, or remove those whose value is None."""
    per_entity = AlterClientQuotasRequest.EntryData
    rows = [
        per_entity(
            version=1,
            entity=[
                per_entity.EntityData(version=1, entity_type=kind, entity_name=name) for kind, name in entity
            ],
            ops=[
                per_entity.OpData(version=1, key=key, value=value or 0.0, remove=value is None)
                for key, value in ops
            ],
        )
        for entity, ops in entries
    ]
    return AlterClientQuotasRequest(version=1, entries=rows, validate_only=validate_only)


def quotas_of(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
    """Describe quotas."""
    per_component = DescribeClientQuotasRequest.ComponentData
    return DescribeClientQuotasRequest(
        version=1,
        components=[
            per_component(version=1, entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )


DAVE, EVERY_APP = ("user", "dave"), ("client-id", None)
BYTES: Ops = (("producer_byte_rate", 1024.0),)
QUOTAS = {
    "quotas": quotas(((DAVE,), BYTES), ((DAVE, EVERY_APP), (("request_percentage", 0.5),))),
    "quotas of addresses": quotas(
        ((("ip", "10.0.0.1"),), (("connection_creation_rate", 3.0),)), ((("ip", "127.0.0.1"),), BYTES)
    ),
    "quotas of more": quotas(((DAVE,), (("controller_mutation_rate", 1.5), ("consumer_byte_rate", 7.0)))),
    "quotas that are not numbers": quotas(
        ((("user", "nan"),), (("producer_byte_rate", math.nan),)),
        ((("client-id", "nan"),), (("request_percentage", math.nan),)),
        validate_only=True,
    ),
    "quotas twice": quotas(((DAVE,), BYTES), ((DAVE,), BYTES)),
    "a quota twice": quotas(((("user", "erin"),), (*BYTES, *BYTES))),
    "no quota": quotas(((("user", "erin"),), ())),
    "removal of no quota": quotas(((("user", "erin"),), (("producer_byte_rate", None),))),
    "quotas of nobody": quotas(((), BYTES)),
    "quotas of no kind": quotas(((("some", "x"),), BYTES)),
    "quotas of no name": quotas(((("user", ""),), BYTES)),
    "quotas of a user and an address": quotas(((("user", "x"), ("ip", "10.0.0.1")), BYTES)),
    "quotas of no host": quotas(((("ip", "no host"),), (("connection_creation_rate", 3.0),))),
    "an unknown quota": quotas(((DAVE,), (("some", 1.0),))),
    "a quota of 0": quotas(((DAVE,), (("consumer_byte_rate", -1.0),))),
    "a quota of half a byte": quotas(((DAVE,), (("producer_byte_rate", 1.5),))),
    "a large quota": quotas(((DAVE,), (("producer_byte_rate", 1e30),))),
    "a large quota of connections": quotas(((("ip", None),), (("connection_creation_rate", 1e12),))),
    "quotas to be checked": quotas(((("user", "frank"),), BYTES), validate_only=True),
    "all quotas": quotas_of(),
    "quotas of dave": quotas_of(("user", 0, "dave")),
    "quotas of dave alone": quotas_of(("user", 0, "dave"), strict=True),
    "quotas of every app": quotas_of(("client-id", 1, None)),
    "quotas of any user": quotas_of(("user", 2, None)),
    "removal": quotas(
        ((DAVE,), (("producer_byte_rate", None), ("consumer_byte_rate", None))),
        ((("ip", "10.0.0.1"),), (("connection_creation_rate", None),)),
    ),
    "all quotas afterwards": quotas_of(),
}

AS_ADMIN = (
    FEATURES
    | QUOTAS
    | {
        "a rule": creation(),
        "the same rule": creation(),
        "a prefix": creation(name="al", pattern=PREFIXED),
        "everything": creation(name="*"),
        "a group": creation(resource=GROUP),
        "a rule about the cluster": creation(resource=CLUSTER, name="kafka-cluster"),
        "another cluster": creation(resource=CLUSTER, name="other"),
        "no name": creation(name=""),
        "resource 0": creation(resource=0),
        "resource 1": creation(resource=1),
        "resource 99": creation(resource=99),
        "pattern 1": creation(pattern=1),
        "pattern 2": creation(pattern=2),
        "pattern 99": creation(pattern=99),
        "operation 1": creation(operation=1),
        "operation 99": creation(operation=99),
        "permission 1": creation(permission=1),
        "permission 99": creation(permission=99),
        "no type of principal": creation(principal="dave"),
        "all rules": description(),
        "rules that match": description(TOPIC, "alike", 2),
        "literal rules": description(TOPIC, "alike", LITERAL),
        "rules of operation 99": description(operation=99),
        "rules of resource 99": description(resource=99),
        "deletion of resource 0": deletion(resource=0),
        "deletion of resource 99": deletion(resource=99),
        "deletion of operation 99": deletion(operation=99),
        "deletion of a prefix": deletion(TOPIC, "al", PREFIXED),
        "deletion of what matches": deletion(TOPIC, "alike", 2),
        "deletion": deletion(),
        "users": upsertion(("dave", 1, 4096), ("erin", 2, 16384), ("frank", 1, 4095), ("grace", 1, 16385)),
        "wrong users": upsertion(("", 1, 4096), ("heidi", 0, 4096), ("ivan", 99, 4096)),
        "a user twice": upsertion(("judy", 1, 4096), ("judy", 2, 4096), ("dave", 2, 4096)),
        "description of users": scram_description("dave", "erin", "nobody", "judy", "judy"),
        "deletion of users": scram_deletion(
            ("dave", 1), ("erin", 1), ("nobody", 1), ("judy", 1), ("judy", 2)
        ),
        "description afterwards": scram_description("dave", "erin"),
    }
)


def answer_as_admin(side: Side, request: Any) -> str:
    """Return the answer to a request, without the number of the controller that gave it."""
    try:
        answer = side.as_admin(request)
    except ConnectionResetError:
        return "closed"
    return re.sub(r"controller [0-9]+ ", "controller … ", repr(common(answer.to_dict())))


READING = (DescribeAclsRequest, DescribeUserScramCredentialsRequest, DescribeClientQuotasRequest)
"""Requests that a broker answers from its metadata, which it may get just after the answer to a change."""


@pytest.mark.slow
@pytest.mark.parametrize("asked", AS_ADMIN)
def test_requests_about_rules_users_and_quotas_are_answered_alike(
    sides: tuple[Side, Side], asked: str
) -> None:
    request, (real, simulated) = AS_ADMIN[asked], sides
    answer = answer_as_admin(simulated, request)
    if isinstance(request, READING):
        wait_until(lambda: answer_as_admin(real, request) == answer, "the broker knows", WAIT_S)
    else:
        assert answer == answer_as_admin(real, request)


def metadata(version: int, topics: list[str] | None, **asked: bool) -> Any:
    per_topic = MetadataRequest.MetadataRequestTopic
    named = None if topics is None else [per_topic(version=version, name=n, topic_id=None) for n in topics]
    return MetadataRequest(version=version, topics=named, allow_auto_topic_creation=False, **asked)


def offsets(topics: list[str] | None) -> Any:
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    named = None
    if topics is not None:
        named = [group.OffsetFetchRequestTopics(version=8, name=n, partition_indexes=[0]) for n in topics]
    return OffsetFetchRequest(
        version=8, groups=[group(version=8, group_id=USUAL["group_id"], topics=named)], require_stable=False
    )


def partitions(*topics: str) -> Any:
    per_topic = DescribeTopicPartitionsRequest.TopicRequest
    return DescribeTopicPartitionsRequest(
        version=0,
        topics=[per_topic(version=0, name=name) for name in topics],
        response_partition_limit=100,
        cursor=None,
    )


def creation_of(*topics: str) -> Any:
    per_topic = CreateTopicsRequest.CreatableTopic
    named = [
        per_topic(version=7, name=n, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for n in topics
    ]
    return CreateTopicsRequest(version=7, topics=named, timeout_ms=q.TIMEOUT_MS, validate_only=True)


def deletion_of(*topics: str) -> Any:
    return DeleteTopicsRequest(version=5, topic_names=list(topics), timeout_ms=q.TIMEOUT_MS)


def share_heartbeat(*topics: str) -> Any:
    return ShareGroupHeartbeatRequest(
        version=1, group_id=SHARES, member_id="m", member_epoch=0, subscribed_topic_names=list(topics)
    )


def share_offsets(topics: list[str] | None) -> Any:
    per_group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    per_topic = per_group.DescribeShareGroupOffsetsRequestTopic
    named = None
    if topics is not None:
        named = [per_topic(version=1, topic_name=name, partitions=[0]) for name in topics]
    return DescribeShareGroupOffsetsRequest(
        version=1, groups=[per_group(version=1, group_id=SHARES, topics=named)]
    )


def share_alteration(*topics: str) -> Any:
    per_topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    partition = per_topic.AlterShareGroupOffsetsRequestPartition(version=0, partition_index=0, start_offset=0)
    named = [per_topic(version=0, topic_name=name, partitions=[partition]) for name in topics]
    return AlterShareGroupOffsetsRequest(version=0, group_id=SHARES, topics=named)


def share_deletion(*topics: str) -> Any:
    per_topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    named = [per_topic(version=0, topic_name=name) for name in topics]
    return DeleteShareGroupOffsetsRequest(version=0, group_id=SHARES, topics=named)


def streams_heartbeat(source: str, changelog: str, group: str = STREAMS) -> Any:
    return StreamsGroupHeartbeatRequest(
        version=0, group_id=group, member_id="m", member_epoch=0, endpoint_information_epoch=-1,
        process_id="p", rebalance_timeout_ms=60_000, active_tasks=[], standby_tasks=[], warmup_tasks=[],
        topology=topology(subtopology("0", [source], changelogs=[info(changelog)])),
    )  # fmt: skip


def streams_description(*groups: str) -> Any:
    return StreamsGroupDescribeRequest(version=0, group_ids=list(groups), include_authorized_operations=True)


BOTH = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
AS_USER = {
    "all topics": metadata(12, None),
    "operations of all topics": metadata(10, None, **BOTH),
    "operations of some topics": metadata(10, ["same-1", "none", "same-none"], **BOTH),
    "operations of the cluster": DescribeClusterRequest(
        version=1, endpoint_type=1, include_cluster_authorized_operations=True
    ),
    "operations of groups": DescribeGroupsRequest(
        version=5, groups=["none", "same-none"], include_authorized_operations=True
    ),
    "all partitions": partitions(),
    "some partitions": partitions("same-1", "none", "same-2"),
    "all offsets": offsets(None),
    "some offsets": offsets(["same-1", "none", "same-2"]),
    "creation": creation_of("same-1", "none", "mine-1"),
    "deletion": deletion_of("same-1", "none", "mine-none"),
    "member of a share group": share_heartbeat("same-1", "none"),
    "all starts of a share group": share_offsets(None),
    "some starts of a share group": share_offsets(["same-1", "none", "same-2"]),
    "no start of a share group": share_offsets(["none"]),
    "other starts": share_alteration("same-1", "none"),
    "fewer starts": share_deletion("same-1", "none"),
    "member of another streams group": streams_heartbeat("same-1", "same-log", "none"),
    "member of a streams group whose source is hidden": streams_heartbeat("same-none", "same-log"),
    "member of a streams group whose changelog is hidden": streams_heartbeat("same-1", "none"),
    "member of a streams group whose changelog cannot be made": streams_heartbeat("same-1", "same-log"),
    "streams groups": streams_description(STREAMS, "none", "same-none"),
}


@pytest.mark.slow
@pytest.mark.parametrize("granted", [False, True])
@pytest.mark.parametrize("asked", AS_USER)
def test_what_a_user_may_not_see_is_hidden_alike(sides: tuple[Side, Side], asked: str, granted: bool) -> None:
    for side in sides:
        side.let(granted)
    answers = [without_messages(common(side.ask(side.user, AS_USER[asked]).to_dict())) for side in sides]
    assert answers[1] == answers[0]


@pytest.mark.slow
@pytest.mark.parametrize("granted", [False, True])
def test_records_for_share_groups_are_refused_alike(sides: tuple[Side, Side], granted: bool) -> None:
    answers = []
    for side in sides:
        side.let(granted)
        (_, topic_id), _ = side.topics
        fetched, said = ShareFetchRequest.FetchTopic, ShareAcknowledgeRequest.AcknowledgeTopic
        one = said.AcknowledgePartition.AcknowledgementBatch(
            version=2, first_offset=0, last_offset=0, acknowledge_types=[1]
        )
        member = {"version": 2, "group_id": SHARES, "member_id": str(UUID(int=7)), "is_renew_ack": False}
        with Client(side.address) as client:
            client.plain(*side.user)
            fetch = client.send(
                ShareFetchRequest(
                    **member,
                    share_session_epoch=0,
                    max_wait_ms=100,
                    min_bytes=1,
                    max_bytes=1 << 20,
                    max_records=10,
                    batch_size=10,
                    share_acquire_mode=0,
                    topics=[
                        fetched(
                            version=2,
                            topic_id=UUID(bytes=topic_id),
                            partitions=[
                                fetched.FetchPartition(
                                    version=2, partition_index=number, acknowledgement_batches=[]
                                )
                                for number in (0, 7)
                            ],
                        )
                    ],
                    forgotten_topics_data=[],
                )
            )
            partition = said.AcknowledgePartition(version=2, partition_index=0, acknowledgement_batches=[one])
            topic = said(version=2, topic_id=UUID(bytes=topic_id), partitions=[partition])
            acknowledged = client.send(
                ShareAcknowledgeRequest(**member, share_session_epoch=1, topics=[topic])
            )
        answers.append([without_messages(common(each.to_dict())) for each in (fetch, acknowledged)])
    assert answers[1] == answers[0]
    if granted:
        rows = answers[0][0]["responses"][0]["partitions"]
        assert [row["error_code"] for row in rows] == [REFUSED, REFUSED]


def _versions(client: Client) -> Any:
    return client.send(ApiVersionsRequest(version=0)).error_code


def _handshake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return common(client.handshake(mechanism, version).to_dict())


def _token(client: Client, token: bytes, version: int = 2) -> Any:
    answer = client.authenticate(token, version).to_dict()
    return {name: field for name, field in answer.items() if name != "session_lifetime_ms"}


LOGINS: dict[str, Sequence[Callable[[Client], Any]]] = {
    "versions twice": (_versions, _versions),
    "metadata": (lambda c: c.send(metadata(12, [])),),
    "no frame": (lambda c: c.bare(b""),),
    "garbage": (lambda c: c.bare(b"\x60" * 40),),
    "token before its mechanism": (lambda c: _token(c, b""),),
    "mechanism of others": (lambda c: _handshake(c, "GSSAPI"), _versions),
    "no mechanism": (lambda c: _handshake(c, ""),),
    "mechanism twice": (_handshake, _handshake),
    "versions instead of a token": (_handshake, _versions),
    "wrong password": (_versions, _handshake, lambda c: _token(c, b"\0nobody\0x"), _versions),
    "wrong password v0": (_handshake, lambda c: _token(c, b"\0nobody\0x", 0)),
    "no password": (_handshake, lambda c: _token(c, b"\0nobody\0")),
    "no user": (_handshake, lambda c: _token(c, b"\0\0x")),
    "one text": (_handshake, lambda c: _token(c, b"nobody")),
    "four texts": (_handshake, lambda c: _token(c, b"\0a\0b\0c")),
    "no UTF-8": (_handshake, lambda c: _token(c, b"\0\xff\0\xff")),
    "bare wrong password": (lambda c: _handshake(c, version=0), lambda c: c.bare(b"\0nobody\0x")),
    "unknown user of SCRAM": (
        lambda c: _handshake(c, "SCRAM-SHA-256"),
        lambda c: _token(c, b"n,,n=nobody,r=abc"),
    ),
    "broken token of SCRAM": (lambda c: _handshake(c, "SCRAM-SHA-512"), lambda c: _token(c, b"nothing")),
    "channel binding": (lambda c: _handshake(c, "SCRAM-SHA-512"), lambda c: _token(c, b"p=x,,n=a,r=b")),
    "no letters": (lambda c: _handshake(c, "SCRAM-SHA-256"), lambda c: _token(c, "n,,n=é,r=b".encode())),
    "token by id": (
        lambda c: _handshake(c, "SCRAM-SHA-256"),
        lambda c: _token(c, b"n,,n=admin,r=b,tokenauth=true"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGINS)
def test_a_login_that_fails_goes_alike(sides: tuple[Side, Side], name: str) -> None:
    answers: list[list[Any]] = []
    for side in sides:
        said: list[Any] = []
        with Client(side.address) as client:
            try:
                for step in LOGINS[name]:
                    said.append(step(client))
            except ConnectionResetError:
                said.append("closed")
        answers.append(said)
    assert answers[1] == answers[0]
