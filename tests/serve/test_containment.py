"""What a client causes ends that client's connection at most: at once, later in an event, or in the answer to
somebody else."""

import random
from typing import Any

import pytest
from kafka.protocol.admin import DescribeQuorumRequest
from kafka.protocol.consumer import JoinGroupRequest, JoinGroupResponse
from kafka.protocol.metadata import ApiVersionsRequest

from kview.serve.apis import all_apis
from kview.simulate.kernel import Kernel
from tests.serve.examples import Examples
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go

APIS = all_apis()
LATER_S = 30.0
"""Longer than every wait of these requests, the rebalance timeout included."""


class Broken(UnwiredClient):
    """A client whose answers cannot be sent."""

    def answered(self, frame: bytes | None) -> None:
        raise OverflowError("an answer that no codec can encode")


def unwired() -> Unwired:
    cluster = cluster_of(settings={"group.initial.rebalance.delay.ms": "100"})
    go(cluster, 1)
    return Unwired(cluster)


@pytest.mark.parametrize("key", APIS)
def test_an_answer_that_fails_ends_its_own_connection_alone(key: int) -> None:
    api, wire = APIS[key], unwired()
    topics = [(TOPIC, wire.cluster.metadata.image.topics[TOPIC].topic_id)]
    examples = Examples(random.Random(key), START_MS, topics)
    for version in range(api.versions[0], api.versions[1] + 1):
        broken, other = Broken(0), UnwiredClient(0)
        wire.send(broken, examples.frame(api, version))
        go(wire.cluster, LATER_S)
        assert [type(failure) for failure in broken.failures] == [OverflowError], f"version {version}"
        wire.ask(other, ApiVersionsRequest(version=0))
        assert len(other.answers) == 1 and not other.closed
    assert wire.event_failures == []


def join(member_id: str = "") -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(version=3, name="range", metadata=b"\0\1\0\0\0\0")
    return JoinGroupRequest(
        version=3,
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


def test_a_member_that_cannot_be_answered_leaves_the_others_of_its_group_alone() -> None:
    wire = unwired()
    broken, other = Broken(0), UnwiredClient(0)
    wire.ask(broken, join())
    wire.ask(other, join())
    go(wire.cluster, 1)
    assert len(broken.failures) == 1
    (answer,) = other.answers
    assert answer is not None and not other.closed
    joined = JoinGroupResponse.decode(answer[8:], version=3)
    assert (joined.error_code, joined.generation_id) == (0, 1)


def test_an_event_of_a_client_that_fails_is_blamed_on_it_and_the_next_one_runs() -> None:
    kernel, ran, blamed = Kernel(1, 0), list[str](), list[Exception]()
    kernel.blame = blamed.append
    kernel.after(10, lambda: 1 // 0)
    kernel.blame = None
    kernel.after(20, ran.append, "next")
    kernel.run_until(100)
    assert ([type(error) for error in blamed], ran) == ([ZeroDivisionError], ["next"])


def test_an_event_that_no_client_caused_raises_unless_somebody_takes_its_exception() -> None:
    kernel, taken = Kernel(1, 0), list[Exception]()
    kernel.after(10, lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        kernel.run_until(100)
    kernel.unblamed = taken.append
    kernel.after(10, lambda: 1 // 0)
    kernel.run_until(200)
    assert [type(error) for error in taken] == [ZeroDivisionError]


def test_a_request_without_what_its_schema_wants_is_refused_before_its_handler_sees_it() -> None:
    wire, client = unwired(), UnwiredClient(0)
    wire.ask(client, DescribeQuorumRequest(version=0, topics=None))
    assert client.closed and client.failures == []
    go(wire.cluster, 1)
    assert wire.event_failures == []
