"""Usual requests of every API and version: the simulated cluster answers as a real one of its release does,
but for what is each cluster's own."""

import random
import socket
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from struct import unpack
from typing import Any

import pytest
from kafka.protocol.producer import InitProducerIdRequest

from kview.serve import apis
from kview.serve.call import Api
from kview.simulate.features import SHARE_VERSION
from kview.simulate.releases import KAFKA_3_9, KAFKA_4_3, Release
from kview.simulate.settings import broker_keys
from tests.real_kafka.asking import Address, ask, create_topic
from tests.real_kafka.cluster import RealKafka
from tests.serve import questions as q
from tests.serve.examples import Examples
from tests.served import QUICK_TIMES, Served
from tests.waiting import wait_until

TOPICS, GROUP, TRANSACTION, SHARES = ("same-1", "same-2"), "same-answers", "same-answers", "same-shares"
STREAMS = "same-streams"
USUAL = {
    "transactional_id": TRANSACTION, "transactional_ids": TRANSACTION, "group_id": GROUP, "groups": GROUP,
    "group_ids": GROUP, "key": GROUP, "coordinator_keys": GROUP, "groups_names": GROUP,
}  # fmt: skip
OF_SHARE_GROUPS: dict[str, str | int] = {"group_id": SHARES, "group_ids": SHARES, "member_id": "same-member"}
OF_STREAMS_GROUPS: dict[str, str | int] = {
    "group_id": STREAMS,
    "group_ids": STREAMS,
    "member_id": "same-member",
}
OWN = {
    "topic_id", "port", "host", "cluster_id", "controller_id", "node_id", "voter_id", "rack", "producer_id",
    "log_dir", "total_bytes", "usable_bytes", "partition_size", "records", "log_append_time_ms", "timestamp",
    "last_timestamp", "transaction_start_time_ms", "finalized_features_epoch", "principal_name",
    "token_requester_principal_name",
}  # fmt: skip
"""Fields with what each cluster has for itself."""

LEFT_OUT = {
    11: "JoinGroup: members have random ids, and wait for each other",
    16: "ListGroups: a real cluster has groups of other tests",
    15: "DescribeGroups: how far a rebalance is depends on the time",
    26: "EndTxn: how far the end of a transaction is depends on the time",
    47: "OffsetDelete: whether the group has members depends on the time",
    55: "DescribeQuorum: a real cluster of tests has one controller",
    80: "AddRaftVoter: the answer names the cluster's id",
    81: "RemoveRaftVoter: the answer names the cluster's id",
}
LEFT_OUT_3_9 = LEFT_OUT | {18: "ApiVersions: a real 3.9 has all versions that Kafka 4.0 removed"}
SHARE_GROUPS, SHARE_STATES = (76, 77, 90, 91, 92), (83, 84, 85, 86, 87)
STREAMS_GROUPS = (88, 89)
OF_GROUPS, OF_TRANSACTIONS = (8, 9, 12, 13, 14, 28, 42, 68, 69), (22, 24, 25, 65, 66)
NEVER_MS = 900_000
"""The longest time-out of a transaction, because each cluster writes an abort at its own time."""

LAST = {42: 1, 20: 2}
"""DeleteGroups and DeleteTopics come after all others."""


class Side:
    """One of the two clusters, and the brokers that answer for the group and the transaction."""

    def __init__(self, release: Release, addresses: Sequence[Address]) -> None:
        self.addresses = addresses
        for name in TOPICS:
            why = create_topic(addresses[0], name, [[0, 1]], {})
            assert not why, why
        for address in addresses[:2]:
            wait_until(partial(self._knows_topics, address), "the topics are known")
        self.topics = [(name, q.topic_id(addresses[0], name).bytes) for name in TOPICS]
        self.coordinators = [self._coordinator(GROUP, 0), self._coordinator(TRANSACTION, 1)]
        wait_until(lambda: q.delete_groups(self.coordinators[0], [GROUP]) == [69], "the groups are loaded")
        wait_until(lambda: q.init_producer_id(self.coordinators[1], TRANSACTION) == 0, "a producer id")
        self.usual: dict[str, str | int] = {**USUAL, "producer_id": self._producer_id()}
        if SHARE_VERSION not in release.features:
            return
        self.of_shares = self._coordinator(SHARES, 0)
        wait_until(lambda: q.delete_groups(self.of_shares, [SHARES]) == [69], "the share group is loaded")
        key = f"{SHARES}:{urlsafe_b64encode(self.topics[0][1]).decode().rstrip('=')}:0"
        self.of_states = self._coordinator(key, 2)

    def _knows_topics(self, address: Address) -> bool:
        return not any(q.metadata(address, name) for name in TOPICS)

    def _coordinator(self, key: str, kind: int) -> Address:
        wait_until(lambda: q.find_coordinator(self.addresses[0], key, kind)[0] == 0, "a coordinator")
        return self.addresses[q.find_coordinator(self.addresses[0], key, kind)[1]]

    def _usual(self, api: Api) -> dict[str, str | int]:
        if api.key in STREAMS_GROUPS:
            return self.usual | OF_STREAMS_GROUPS
        return self.usual | (OF_SHARE_GROUPS if api.key in range(76, 93) else {})

    def _producer_id(self) -> int:
        request = InitProducerIdRequest(
            version=1, transactional_id=TRANSACTION, transaction_timeout_ms=NEVER_MS
        )
        answer = ask(self.coordinators[1], request)
        assert not answer.error_code, answer
        return int(answer.producer_id)

    def address(self, api: Api) -> Address:
        if api.key in OF_GROUPS:
            return self.coordinators[0]
        if api.key in SHARE_GROUPS:
            return self.of_shares
        if api.key in STREAMS_GROUPS:
            return self._coordinator(STREAMS, 0)
        if api.key in SHARE_STATES:
            return self.of_states
        return self.coordinators[1] if api.key in OF_TRANSACTIONS else self.addresses[0]

    def answer(self, api: Api, version: int, now_ms: int) -> Any:
        """Return the answer to the usual request, without what is the cluster's own."""
        examples = Examples(
            random.Random(f"{api.key}/{version}"), now_ms, self.topics, usual=self._usual(api)
        )
        request = examples.request(api, version)
        request.with_header(7, "tests")
        kind = request.header.get_response_class()
        with socket.create_connection(self.address(api), timeout=q.ANSWER_S) as connection:
            connection.sendall(request.encode(header=True, framed=True))
            stream = connection.makefile("rb")
            frame = stream.read(unpack(">i", stream.read(4))[0])
        return common(kind.decode(frame, header=True).to_dict())


def common(value: Any) -> Any:
    """Return what both clusters have in common: an answer without its own fields, with its lists sorted."""
    if isinstance(value, dict):
        return {name: common(field) for name, field in value.items() if name not in OWN}
    if isinstance(value, list | tuple | set | frozenset):
        return sorted((common(item) for item in value), key=repr)
    return value


FIXTURES = {KAFKA_4_3: "shared_kafka", KAFKA_3_9: "shared_kafka_3"}

Sides = Callable[[Release], tuple[Side, Side]]
"""Returns a real and a simulated cluster of a release, which start with the first question."""


@pytest.fixture(scope="module")
def sides(request: pytest.FixtureRequest) -> Iterator[Sides]:
    with ExitStack() as stack:

        @cache
        def start(release: Release) -> tuple[Side, Side]:
            kafka: RealKafka = request.getfixturevalue(FIXTURES[release])
            kafka.heal()
            one_partition = (
                "offsets.topic.num.partitions=1",
                "transaction.state.log.num.partitions=1",
                "share.coordinator.state.topic.num.partitions=1",
            )
            known = broker_keys(release)
            settings = [each for each in (*QUICK_TIMES, *one_partition) if each.partition("=")[0] in known]
            flags = (
                "--release",
                release.name,
                "--no-traffic",
                "--brokers",
                f"{kafka.brokers}",
                "--racks",
                "1",
            )
            served = stack.enter_context(Served(*flags, settings=tuple(settings)))
            real = Side(release, [kafka.address(b) for b in kafka.broker_ids])
            return real, Side(release, served.addresses)

        yield start


def asked(release: Release) -> Iterator[Any]:
    """Yield all that is asked of the clusters of a release, as parameters."""
    of_release = apis.all_apis(release).values()
    for api in sorted(of_release, key=lambda api: (LAST.get(api.key, 0), api.key)):
        for version in range(api.versions[0], api.versions[1] + 1):
            if api.key not in (LEFT_OUT if release is KAFKA_4_3 else LEFT_OUT_3_9):
                mark = pytest.mark.real_cluster(fixture=FIXTURES[release])
                name = f"{release.name} {api.request.__name__} v{version}"
                yield pytest.param(release, api, version, id=name, marks=mark)


@pytest.mark.parametrize(("release", "api", "version"), [*asked(KAFKA_4_3), *asked(KAFKA_3_9)])
def test_a_usual_request_is_answered_alike(sides: Sides, release: Release, api: Api, version: int) -> None:
    real, simulated = sides(release)
    now_ms = round(time.time() * 1000)
    assert simulated.answer(api, version, now_ms) == real.answer(api, version, now_ms)
