"""Faults as clients see them: a killed broker refuses connections, a hung one is silent, a fenced one still
answers."""

import signal
import socket
import time
from struct import pack

import confluent_kafka
import pytest

from kview.model.lab import ActiveFault, FaultState, NodeRole
from tests.serve.clients import deliver, producer
from tests.served import DEBUGGING, Served
from tests.waiting import PATIENCE_S, wait_until

API_VERSIONS = pack(">ihhih", 10, 18, 0, 7, -1)
FENCED_WITHIN_S = 10.0


def answers(cluster: Served, broker: int, timeout_s: float = 1.0) -> bool:
    """Return whether a broker answers on a new connection. Raises OSError if it accepts no connection."""
    with socket.create_connection(cluster.addresses[broker], timeout=timeout_s) as connection:
        connection.sendall(API_VERSIONS)
        try:
            return connection.recv(1) != b""
        except TimeoutError:
            return False


def opened(cluster: Served, broker: int) -> bool:
    """Return whether a broker's port accepts connections."""
    try:
        socket.create_connection(cluster.addresses[broker], timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def answering_took_s(cluster: Served, broker: int) -> float:
    """Return how many seconds a broker took to answer on a new connection."""
    began_s = time.monotonic()
    assert answers(cluster, broker, PATIENCE_S)
    return time.monotonic() - began_s


def test_a_killed_broker_resets_and_refuses_and_keeps_its_port(simulated_cluster: Served) -> None:
    address = simulated_cluster.addresses[4]
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(API_VERSIONS)
        assert len(connection.recv(1000)) > 10
        simulated_cluster.do("crash 4")
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(address)
    simulated_cluster.do("start 4")
    wait_until(lambda: opened(simulated_cluster, 4), "the same port opens again", 2 * FENCED_WITHIN_S)
    assert answers(simulated_cluster, 4)


def test_a_crash_is_seen_as_kafka_shows_it(simulated_cluster: Served) -> None:
    topic = "crashed"
    simulated_cluster.create(topic, [[4, 2, 1]])
    before = simulated_cluster.partition(topic)
    simulated_cluster.do("crash 4")
    during = simulated_cluster.partition(topic)
    assert (during.leader_id, sorted(during.isr_nodes)) == (4, [1, 2, 4]), (
        "until its session ends it is listed"
    )
    assert 4 not in simulated_cluster.fenced()
    seen = []

    def moved() -> bool:
        seen.append(simulated_cluster.metadata(topic))
        return bool(seen[-1].partitions[0].leader_id == 2)

    wait_until(moved, "the next replica leads", FENCED_WITHIN_S)
    states = {
        (p.leader_id, p.leader_epoch, tuple(p.isr_nodes), tuple(p.offline_replicas))
        for p in (topic.partitions[0] for topic in seen)
    }
    epoch = before.leader_epoch
    assert states == {(4, epoch, (4, 2, 1), ()), (2, epoch + 1, (2, 1), (4,))}, "in one step"
    assert simulated_cluster.fenced() == {4}


def test_a_hung_broker_accepts_and_says_nothing_and_goes_on_when_resumed(simulated_cluster: Served) -> None:
    with socket.create_connection(simulated_cluster.addresses[4], timeout=5) as old:
        old.sendall(API_VERSIONS)
        assert len(old.recv(1000)) > 10
        simulated_cluster.do("hang 4")
        assert not answers(simulated_cluster, 4), "a new connection is taken and not answered"
        old.sendall(API_VERSIONS)
        old.settimeout(0.5)
        with pytest.raises(TimeoutError):
            old.recv(1)
        wait_until(lambda: simulated_cluster.fenced() == {4}, "it is fenced", FENCED_WITHIN_S)
        assert not answers(simulated_cluster, 4, 0.3), "a fenced one still accepts"
        simulated_cluster.do("start 4")
        old.settimeout(10)
        assert old.recv(1000)[4:8] == pack(">i", 7), "what was asked meanwhile is answered"


@pytest.mark.parametrize("late", [False, True])
def test_a_restarted_broker_refuses_connections_until_it_is_unfenced(
    simulated_cluster: Served, late: bool
) -> None:
    topic = f"restarted-{late}"
    simulated_cluster.create(topic, [[4, 2, 1]])
    simulated_cluster.do("crash 4")
    if late:
        wait_until(lambda: simulated_cluster.fenced() == {4}, "it is fenced", FENCED_WITHIN_S)
    simulated_cluster.do("start 4")
    assert not opened(simulated_cluster, 4)
    wait_until(lambda: opened(simulated_cluster, 4), "its port is open", 2 * FENCED_WITHIN_S)
    assert simulated_cluster.partition(topic, broker=4).leader_id == 2, "no answer from before the crash"
    assert simulated_cluster.fenced() == set()


def test_a_slow_broker_answers_later(simulated_cluster: Served) -> None:
    simulated_cluster.do("slow 4 1500ms")
    assert answering_took_s(simulated_cluster, 4) >= 1.5, "later by so much"
    wait_until(lambda: answering_took_s(simulated_cluster, 4) < 3.0, "and not twice")
    simulated_cluster.do("start 4")
    wait_until(lambda: answering_took_s(simulated_cluster, 4) < 1.5, "at once")


def test_a_stopped_broker_has_handed_over_before_it_is_gone(simulated_cluster: Served) -> None:
    topic = "stopped"
    simulated_cluster.create(topic, [[4, 2, 1]])
    simulated_cluster.do("stop 4")

    def gone() -> bool:
        try:
            answers(simulated_cluster, 4)
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:  # the kernel accepted the connection, and closed it with the process
            return False
        return False

    wait_until(gone, "its process has ended", FENCED_WITHIN_S)
    now = simulated_cluster.partition(topic)
    assert now.leader_id == 2 and sorted(now.isr_nodes) == [1, 2], "no moment without a leader that lives"


def test_a_lost_rack_comes_back_with_undo(simulated_cluster: Served) -> None:
    simulated_cluster.do("lose-rack R2")
    assert simulated_cluster.status().active == tuple(ActiveFault(n, FaultState.CRASHED) for n in (3, 4, 5))
    for broker in (3, 4, 5):
        with pytest.raises(ConnectionRefusedError):
            answers(simulated_cluster, broker)
    simulated_cluster.heal()
    assert simulated_cluster.status().active == ()


def test_the_active_controller_is_replaced(simulated_cluster: Served) -> None:
    done = simulated_cluster.do("crash-controller")
    (killed,) = done.nodes
    assert done.role is NodeRole.CONTROLLER and killed in (101, 102, 103)
    assert simulated_cluster.status().active == (
        ActiveFault(killed, FaultState.CRASHED, role=NodeRole.CONTROLLER),
    )
    simulated_cluster.create("after-the-election", [[0, 1]])


def test_acks_1_loses_what_no_follower_has_and_acks_all_does_not(simulated_cluster: Served) -> None:
    topic = "lossy"
    simulated_cluster.create(topic, [[4, 2, 1]])
    deliver(producer(simulated_cluster.bootstrap), topic, [b"safe-%d" % n for n in range(99)])
    hasty = producer(simulated_cluster.bootstrap, acks=1)
    deliver(hasty, topic, [b"safe-99"])
    wait_until(lambda: simulated_cluster.offset(4, topic).offset == 100, "committed")
    simulated_cluster.do("hang 1")
    simulated_cluster.do("hang 2")
    deliver(hasty, topic, [b"sent"])  # answers the followers' waiting fetches, into their sockets
    acknowledged = deliver(hasty, topic, [b"lost-%d" % n for n in range(50)])
    assert max(acknowledged) == 150, "acknowledged by the leader alone"
    simulated_cluster.do("crash 4")
    simulated_cluster.do("start 1")
    simulated_cluster.do("start 2")
    wait_until(
        lambda: simulated_cluster.partition(topic).leader_id in (1, 2), "a follower leads", FENCED_WITHIN_S
    )
    leader = simulated_cluster.partition(topic).leader_id

    def latest() -> int:
        return int(simulated_cluster.offset(leader, topic).offset)

    wait_until(lambda: latest() == 101, "the committed ones are there, the others are not")
    deliver(producer(simulated_cluster.bootstrap), topic, [b"after"])
    simulated_cluster.do("start 4")
    wait_until(lambda: opened(simulated_cluster, 4), "its port is open", 2 * FENCED_WITHIN_S)
    wait_until(
        lambda: simulated_cluster.offset(4, topic, replica_id=DEBUGGING).offset == 102,
        "the old leader has truncated and follows",
        20,
    )
    client = confluent_kafka.Consumer(
        {"bootstrap.servers": simulated_cluster.bootstrap, "group.id": "x", "log_level": 2}
    )
    client.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []

    def read() -> bool:
        values.extend(m.value() for m in client.consume(500, timeout=0.1) if m.error() is None)
        return len(values) >= 102

    wait_until(read, "everything that is left")
    client.close()
    assert values == [*(b"safe-%d" % n for n in range(100)), b"sent", b"after"]


def test_acks_all_waits_while_a_silent_follower_is_in_the_isr(simulated_cluster: Served) -> None:
    topic = "frozen"
    simulated_cluster.create(topic, [[4, 2]])
    simulated_cluster.do("hang 2")
    client = producer(simulated_cluster.bootstrap)
    outcome: list[object] = []
    client.produce(topic, b"waits", partition=0, on_delivery=lambda error, message: outcome.append(error))
    client.flush(0.7)
    assert outcome == []
    assert simulated_cluster.offset(4, topic).offset == 0, "the watermark stands still"
    assert simulated_cluster.offset(4, topic, replica_id=DEBUGGING).offset == 1, "the leader has it"
    assert client.flush(FENCED_WITHIN_S) == 0, "until the follower is fenced and leaves the ISR"
    assert outcome == [None]
    assert simulated_cluster.offset(4, topic).offset == 1


def test_too_few_in_sync_replicas_refuse_acks_all_alone(simulated_cluster: Served) -> None:
    topic = "min-isr"
    simulated_cluster.create(topic, [[4, 2]], min_insync_replicas="2")
    simulated_cluster.do("crash 2")
    wait_until(lambda: simulated_cluster.fenced() == {2}, "fenced", FENCED_WITHIN_S)
    strict = producer(simulated_cluster.bootstrap, message_send_max_retries=0, enable_idempotence=False)
    with pytest.raises(confluent_kafka.KafkaException, match="NOT_ENOUGH_REPLICAS"):
        deliver(strict, topic, [b"refused"])
    assert deliver(producer(simulated_cluster.bootstrap, acks=1), topic, [b"taken"]) == [0]


def test_a_pause_of_the_whole_process_expires_nobodys_session(simulated_cluster: Served) -> None:
    pause_s = 2.0
    began = time.monotonic()
    simulated_cluster.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: time.monotonic() > began + pause_s, "longer than a broker's session", 2 * pause_s)
    finally:
        simulated_cluster.process.send_signal(signal.SIGCONT)
    resumed = time.monotonic()
    while time.monotonic() < resumed + 1.0:
        assert simulated_cluster.fenced() == set()
    assert simulated_cluster.status().behind_ms > 1_000
