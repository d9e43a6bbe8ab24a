"""Fetch sessions (KIP-227): the same conversations with the simulated and with a real cluster.

Read from Apache Kafka 4.3.1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import pytest

from kview.simulate.records import encode_batch
from tests.real_kafka.asking import Address
from tests.real_kafka.cluster import RealKafka
from tests.serve import questions as q
from tests.serve.fetch_client import Client, Partition
from tests.served import QUICK_TIMES, Served
from tests.waiting import wait_until

TIME_MS = 1_700_000_000_000
BY_NAME, BY_ID = 12, 17
ELECTION_NOT_NEEDED = 84
"""The controller has elected the preferred leader by itself, as it does every few seconds."""


def batch() -> bytes:
    return encode_batch([(b"k", b"v", TIME_MS)])


def produced(address: Address, *partitions: Partition) -> None:
    for topic, index in partitions:
        assert q.produce(address, topic, batch(), partition=index) == 0


def converse(at: Callable[[int], Address], version: int, name: str) -> list[bytes]:
    """Have a conversation about an empty topic of three partitions, and return the answers."""
    address = at(0)
    a, b, c = ((name, index) for index in range(3))
    client = Client(address, version, [name])
    began = client.fetch(0, 0, {a: 0, b: 0, c: 0})
    session = began.session
    assert (began.error, began.partitions) == (0, [0, 1, 2]) and session > 0
    assert client.fetch(session, 1) == (0, session, []), "nothing has changed"
    produced(address, b, a)
    changed = client.fetch(session, 2)
    assert (changed.partitions, [row.watermark for row in changed.rows]) == ([0, 1], [1, 1])
    assert client.fetch(session, 3).partitions == [0, 1], "records are sent as long as they are wanted"
    assert client.fetch(session, 4, {a: 1, b: 1}) == (0, session, []), "both have been read"
    produced(address, a, b, c)
    one = client.fetch(session, 5, most_bytes=1)
    assert [(row.partition[1], row.size > 0) for row in one.rows] == [(2, True), (0, False), (1, False)]
    assert [(row.partition[1], row.size > 0) for row in client.fetch(session, 6, most_bytes=1).rows] == [
        (0, True)
    ], "a partition that brought records comes last the next time"
    assert [row.partition[1] for row in client.fetch(session, 7, most_bytes=1).rows] == [1]
    assert client.fetch(session, 7).error == 71, "the epoch has been used"
    assert client.fetch(session, 9).error == 71, "an epoch was left out"
    other = BY_ID if version == BY_NAME else BY_NAME
    assert client.fetch(session, 8, version=other).error == 106, "names and ids are not mixed"
    far = client.fetch(session, 8, {a: 99}, [b, c])
    assert [row[1:] for row in far.rows] == [(1, -1, 0, -1)], "an error comes again …"
    assert [row[1:] for row in client.fetch(session, 9).rows] == [(1, -1, 0, -1)]
    assert [row[1:] for row in client.fetch(session, 10, {a: 2}).rows] == [(0, 2, 0, -1)], "… until it ends"
    assert client.fetch(session, 11, {(name, 7): 0, b: 2}).partitions == [1, 7], "b is new again, 7 unknown"
    assert client.fetch(session, 12, {}, [a, b, (name, 7)]) == (0, 0, []), "forgetting all ends the session"
    assert client.fetch(session, 13).error == 70
    second = client.fetch(0, 0, {a: 2}).session
    third = client.fetch(second, 0, {a: 2}).session
    assert second != third, "a session that begins ends the one that it names"
    assert client.fetch(second, 1).error == 70
    assert client.fetch(third, -1, {a: 2})[:2] == (0, 0)
    assert client.fetch(third, 1).error == 70
    assert client.fetch(0, 0).session > 0, "a session may begin without partitions"
    return client.frames


def _reads(client: Client, asked: Mapping[Partition, int], expected: list[tuple[int, int]]) -> bool:
    """Return whether a fetch answers with these errors and high watermarks."""
    return [row[1:3] for row in client.fetch(0, -1, asked).rows] == expected


def ask_the_wrong_ones(at: Callable[[int], Address], version: int, name: str) -> list[bytes]:
    """Fetch from brokers and epochs that are not the right ones, and return the answers.

    Of two partitions, one has been moved from broker 0 to broker 1 after its first two records.
    """
    stays, moved = (name, 0), (name, 1)
    at_0, at_1, at_2 = (Client(at(b), version, [name]) for b in range(3))
    both = {stays: 0, moved: 0}
    produced(at(0), moved, moved, stays)
    assert q.reassign(at(0), name, 1, [1, 0]) == 0
    wait_until(lambda: not q.reassignments(at(0)), "the replicas have their new order")
    assert q.elect_leaders(at(0), 0, name, 1)[1] in (0, ELECTION_NOT_NEEDED)
    wait_until(lambda: q.produce(at(1), name, batch(), partition=1) == 0, "broker 1 leads")
    for client in (at_0, at_1):
        wait_until(partial(_reads, client, both, [(0, 1), (0, 3)]), "copied")
        client.frames.clear()
    assert [row.error for row in at_2.fetch(0, -1, both).rows] == [6, 6], "broker 2 has neither"
    assert [row.error for row in at_0.fetch(0, -1, both, current_epoch=0).rows] == [0, 74]
    assert [row.error for row in at_0.fetch(0, -1, both, current_epoch=9).rows] == [75, 75]
    assert [row.error for row in at_1.fetch(0, -1, {moved: 3}, last_epoch=9).rows] == [1]
    for last_epoch, offset, error, diverging in (
        (0, 2, 0, None),
        (0, 3, 0, (0, 2)),
        (1, 3, 0, None),
        (1, 4, 0, (1, 3)),
        (-1, 4, 1, None),
    ):
        for client in (at_0, at_1):
            rows = client.fetch(0, -1, {moved: offset}, last_epoch=last_epoch, wait_ms=1).rows
            told = client.answer.responses[0].partitions[0].diverging_epoch
            assert rows[0].error == error
            assert (told and (told.epoch, told.end_offset)) == diverging
    return [*at_0.frames, *at_1.frames, *at_2.frames]


Conversation = Callable[[Callable[[int], Address], int, str], list[bytes]]
CONVERSATIONS: list[tuple[Conversation, int]] = [(converse, 3), (ask_the_wrong_ones, 2)]
"""Each with the number of partitions of its topic, which all are on brokers 0 and 1."""


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
@pytest.mark.parametrize(("conversation", "partitions"), CONVERSATIONS)
def test_a_conversation(
    simulated_cluster: Served, conversation: Conversation, partitions: int, version: int
) -> None:
    name = f"{conversation.__name__}-{version}"
    simulated_cluster.create(name, [[0, 1]] * partitions)
    wait_until(partial(known_to_all, simulated_cluster.addresses[:3], name), "known")
    conversation(simulated_cluster.addresses.__getitem__, version, name)


@pytest.fixture(scope="module")
def three_brokers() -> Iterator[Served]:
    """A simulated cluster like the real one."""
    with Served("--no-traffic", "--brokers", "3", "--racks", "1", settings=QUICK_TIMES) as served:
        yield served


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
@pytest.mark.parametrize(("conversation", "partitions"), CONVERSATIONS)
def test_a_conversation_is_the_same_with_a_real_cluster(
    real_kafka: RealKafka, three_brokers: Served, conversation: Conversation, partitions: int, version: int
) -> None:
    name = f"{conversation.__name__}-{version}"
    real_kafka.create_topic(name, [[0, 1]] * partitions)
    three_brokers.create(name, [[0, 1]] * partitions)
    wait_until(partial(known_to_all, three_brokers.addresses, name), "known")
    simulated = conversation(three_brokers.addresses.__getitem__, version, name)
    assert simulated == conversation(real_kafka.address, version, name)


def known_to_all(addresses: Sequence[Address], name: str) -> bool:
    return not any(q.metadata(address, name) for address in addresses)
