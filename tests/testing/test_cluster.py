"""Clusters for tests: faults, topics, waiting, and what is said of wrong use."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.consumer import JoinGroupRequest

from kview.testing import AsyncCluster, Cluster, ClusterError
from tests.real_kafka.asking import ask
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(racks=3) as cluster:
        yield cluster


@pytest.fixture
def kafka(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.heal()


def write(kafka: Cluster, topic: str, values: list[bytes]) -> list[str]:
    """Write values with acks=all, and return the errors that there were."""
    errors: list[str] = []
    client = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for value in values:
        client.produce(
            topic, value, on_delivery=lambda error, _: errors.append(str(error)) if error else None
        )
    left = client.flush(30)
    return [*errors, *["not delivered"] * left]


def reading(kafka: Cluster, group: str, topic: str) -> Consumer:
    """A member of a group that has read a record."""
    client = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    client.subscribe([topic])
    wait_until(lambda: client.consume(1, timeout=0.1), "the first record")
    return client


def join_and_go(kafka: Cluster, group: str) -> None:
    """Join a group over a connection that then closes, as that of a member whose process dies."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        version=3, group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, member_id="",
        protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip
    hosts = (kafka.bootstrap(broker).split(":") for broker in kafka.brokers)
    assert 0 in [ask((host, int(port)), request).error_code for host, port in hosts], "one coordinates it"


def test_a_leader_that_crashes_is_replaced_once_it_is_fenced_and_nothing_is_lost(kafka: Cluster) -> None:
    topic = kafka.new_topic("orders")
    first = kafka.leader(topic)
    assert write(kafka, topic, [b"before"]) == []
    kafka.crash(first)
    assert kafka.leader(topic) == first, "its session lasts for nine seconds"
    kafka.fence_now(first)
    second = kafka.wait_leader(topic, other_than=first)
    assert kafka.partition(topic).isr and first not in kafka.partition(topic).isr
    assert write(kafka, topic, [b"after"]) == []
    kafka.start(first)
    kafka.advance(3)  # it takes two seconds to start
    kafka.wait_full_isr()
    assert set(kafka.partition(topic).isr) == {0, 1, 2} and kafka.leader(topic) == second


def test_topics_and_groups_have_names_of_their_own_and_are_gone_after_healing(kafka: Cluster) -> None:
    names = {kafka.new_topic("a b/ü"), kafka.new_topic("a b/ü"), kafka.new_topic("x" * 300)}
    assert len(names) == 3 and kafka.new_group() != kafka.new_group()
    kafka.create_topic("mine", 2, 1, settings={"retention.ms": "1000"})
    kafka.create_topic("placed", assignment=[[2, 0]])
    assert kafka.partition("mine", 1).replicas and kafka.partition("placed").replicas == (2, 0)
    kafka.heal()
    for gone in (*names, "mine"):
        with pytest.raises(ClusterError, match="has no partition 0"):
            kafka.leader(gone)


def test_a_rack_and_a_controller_are_lost_and_undone(kafka: Cluster) -> None:
    kafka.lose_rack("R2")
    controller = kafka.crash_controller()
    assert controller in (101, 102, 103)
    assert {fault.node for fault in kafka.status().active} == {1, controller}
    kafka.slow(0, 20)
    kafka.hang(2)
    kafka.heal()
    assert kafka.status().healthy, "although the rack's old sessions last for nine seconds"


def test_time_that_passes_at_once_ends_sessions_of_clients_that_are_gone_and_of_no_others(
    kafka: Cluster,
) -> None:
    topic, here, gone = kafka.new_topic(), kafka.new_group(), kafka.new_group()
    assert write(kafka, topic, [b"1"]) == []
    client = reading(kafka, here, topic)
    join_and_go(kafka, gone)
    asked = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def members() -> list[int]:
        told = asked.describe_consumer_groups([here, gone])
        return [len(told[group].result(10).members) for group in (here, gone)]

    assert members() == [1, 1]
    kafka.advance(60)
    assert members() == [1, 0]
    kafka.advance(60, with_sessions=True)
    assert members() == [0, 0]
    client.close()


def test_records_are_deleted_once_their_time_has_passed(kafka: Cluster) -> None:
    hour = {"retention.ms": "3600000", "segment.ms": "600000", "message.timestamp.type": "LogAppendTime"}
    topic = kafka.new_topic(settings=hour)
    assert write(kafka, topic, [b"old"]) == []
    kafka.advance(2 * 3600)
    assert write(kafka, topic, [b"new"]) == []
    kafka.advance(600)
    client = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": kafka.new_group()})
    assert client.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (1, 2)
    client.close()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda kafka: kafka.crash(9), "there is no node 9: the brokers are 0 to 2"),
        (lambda kafka: kafka.fence_now(101), "there is no broker 101: available brokers: 0, 1, 2"),
        (lambda kafka: kafka.do("crahs 1"), "did you mean crash"),
        (lambda kafka: kafka.start(1), "is running normally"),
        (lambda kafka: kafka.create_topic("t", replication_factor=4), "'t' was not created: error 38"),
        (lambda kafka: kafka.create_topic("a b"), "'a b' was not created: error 17"),
        (lambda kafka: kafka.leader("nothing"), "has no partition 0"),
        (lambda kafka: kafka.wait(lambda: False, "the moon", 0.02), "not within 0.02 s: the moon"),
    ],
)
def test_what_is_wrong_is_a_sentence(kafka: Cluster, wrong: object, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        wrong(kafka)  # type: ignore[operator]


def test_a_cluster_that_cannot_start_says_why() -> None:
    with pytest.raises(ClusterError, match=r"release 3\.9 is not one of '3\.9', '4\.3'"):
        Cluster(release=3.9)  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match="--racks 5 is more than --brokers 3"):
        Cluster(brokers=3, racks=5)
    with pytest.raises(ClusterError, match=r"no\.such\.setting"):
        Cluster(settings={"no.such.setting": "1"})


def test_while_asyncio_waits_for_the_cluster_its_loop_goes_on() -> None:
    async def crash() -> tuple[int, int]:
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with AsyncCluster(brokers=1) as kafka:
            turning = asyncio.create_task(turn())
            topic = await kafka.new_topic(partitions=2)
            leader = await kafka.leader(topic, 1)
            turning.cancel()
        with pytest.raises(ClusterError, match="has ended"):
            await kafka.crash(0)
        return leader, turns

    leader, turns = asyncio.run(crash())
    assert leader == 0 and turns > 10


def test_a_topic_is_made_while_a_broker_starts_and_slow_brokers_answer(kafka: Cluster) -> None:
    kafka.crash(0)
    kafka.fence_now(0)
    kafka.start(0)
    for broker in kafka.brokers:
        if broker:
            kafka.slow(broker, 1)
    assert kafka.leader(kafka.new_topic()) in kafka.brokers


def test_a_call_that_is_cut_off_ends_the_cluster_so_that_no_answer_is_taken_for_another() -> None:
    with Cluster(brokers=1) as kafka, pytest.MonkeyPatch.context() as patch:
        patch.setattr("kview.testing.cluster.messages", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kafka.status()
        with pytest.raises(ClusterError, match="has ended"):
            kafka.status()


def interrupted(*_: object) -> object:
    raise KeyboardInterrupt


def test_days_pass_without_frames_for_each_second(kafka: Cluster) -> None:
    kafka.film()
    kafka.advance(86_400)
    assert kafka.status().healthy and kafka.ahead_s >= 86_400


def test_a_module_of_the_project_does_not_take_the_place_of_kafka_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kafka.py").write_text("raise AssertionError")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with Cluster(brokers=1) as kafka:
        assert kafka.running


def test_a_killed_cluster_is_said_to_have_ended_by_whatever_asks_next() -> None:
    with Cluster(brokers=1) as kafka:
        os.kill(kafka.pid, signal.SIGKILL)
        with pytest.raises(ClusterError, match="has ended"):
            kafka.crash(0)
        with pytest.raises(ClusterError, match="has ended"):
            kafka.heal()
    assert not kafka.running


def test_a_leader_cut_off_from_the_others_answers_its_clients_and_what_it_took_is_gone(
    kafka: Cluster,
) -> None:
    topic = kafka.new_topic("orders", settings={"min.insync.replicas": "2"})
    first = kafka.leader(topic)
    kafka.cut(first, 101)
    kafka.cut(first, 102, one_way=True)
    kafka.join_all()
    with pytest.raises(ClusterError, match=f"nodes {first} and 101 reach each other"):
        kafka.join(first, 101)
    kafka.isolate(first)
    alone = Producer({"bootstrap.servers": kafka.bootstrap(first), "acks": 1})
    answers: list[int | None] = []
    alone.produce(topic, b"lost", on_delivery=lambda error, message: answers.append(message.offset()))
    assert alone.flush(30) == 0 and answers == [0], "acknowledged with one copy"
    kafka.fence_now(first)
    others = [broker for broker in kafka.brokers if broker != first]
    servers = ",".join(map(kafka.bootstrap, others))
    client = Producer({"bootstrap.servers": servers, "acks": "all"})
    client.produce(topic, b"kept", on_delivery=lambda error, message: answers.append(message.offset()))
    assert client.flush(30) == 0 and answers == [0, 0]
    kafka.start(first)
    kafka.wait_full_isr()
    got = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": kafka.new_group()})
    got.assign([TopicPartition(topic, 0, 0)])
    (message,) = got.consume(1, timeout=30)
    got.close()
    assert message.value() == b"kept"


def test_a_broker_with_two_disks_goes_on_without_one() -> None:
    with Cluster(settings={"log.dirs": "a,b"}) as kafka:
        kafka.create_topic("orders", 4, settings={"min.insync.replicas": "2"})
        assert write(kafka, "orders", [b"%d" % number for number in range(40)]) == []
        kafka.slow_disk(0, 0.05)
        kafka.repair_disk(0)
        kafka.lose_disk(0)

        def holding() -> int:
            return sum(0 in kafka.partition("orders", number).isr for number in range(4))

        kafka.wait(lambda: holding() < 4, "what was on its disk has left it", 5)
        assert holding() == 2, "its other disk works"
        answered = ask(_address(kafka, 0), DescribeLogDirsRequest(version=4, topics=None))
        assert [found.error_code for found in answered.results] == [0, 56]
        assert [bool(found.topics) for found in answered.results] == [True, False]
        kafka.fill_disk(1)
        kafka.heal()
        assert kafka.status().active == ()
        with pytest.raises(ClusterError, match="61 is not a latency"):
            kafka.slow_disk(0, 61)


def _address(kafka: Cluster, broker: int) -> tuple[str, int]:
    host, _, port = kafka.bootstrap(broker).partition(":")
    return host, int(port)


def test_while_time_stands_requests_are_served_and_sessions_last(kafka: Cluster) -> None:
    gone = kafka.new_group()
    with kafka.pause():
        assert kafka.status().stands
        topic, group = kafka.new_topic(), kafka.new_group()
        assert write(kafka, topic, [b"1"]) == []
        reading(kafka, group, topic).close()
        join_and_go(kafka, gone)
        times = {each.at_ms for each in kafka.requests() if each.partitions or each.group == gone}
        assert len(times) == 1, "the clock stands"
        kafka.advance(20)
        assert kafka.status().stands
        (later,) = {each.at_ms for each in kafka.requests("Metadata")[-1:]}
        assert write(kafka, topic, [b"2"]) == []
        assert kafka.requests("Produce")[-1].at_ms >= max(times) + 20_000 and later
        asked = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        assert len(asked.describe_consumer_groups([gone])[gone].result(10).members) == 1
        kafka.advance(20)
        assert len(asked.describe_consumer_groups([gone])[gone].result(10).members) == 0
    assert not kafka.status().stands
    kafka.do("pause")
    assert kafka.status().stands
    kafka.heal()
    assert not kafka.status().stands


def test_asyncio_pauses_time_too(shared: Cluster) -> None:
    async def run() -> None:
        kafka = AsyncCluster(shared)
        async with await kafka.pause():
            assert (await kafka.status()).stands
        assert not (await kafka.status()).stands

    asyncio.run(run())


def test_a_cluster_can_be_of_an_older_release() -> None:
    with Cluster(brokers=1, release="3.9") as kafka:
        topic = kafka.new_topic(settings={"message.format.version": "2.8"})  # which is gone in 4.0
        assert write(kafka, topic, [b"one"]) == []
        client = reading(kafka, kafka.new_group(), topic)
        client.close()
