"""What Connect's workers run, from what real workers of Kafka 4.3.1 said when they joined and were told."""

from kview.observe.groups.kinds import connector_tasks
from kview.wire.primitives import Writer

JOINED = (
    b"\x00\x02\x00\x17http://127.0.0.1:18083/\x00\x00\x00\x00\x00\x00\x00\x17\x00\x00\x00\xf3\x00\x02\x00\x00\x00<connect-127"
    b".0.0.1:18083-b7f5b591-d267-4929-b807-f6936ff4ad38\x00\x17http://127.0.0.1:18083/\x00\x00\x00\x00\x00\x00\x00\x16"
    b"\x00\x00\x00\x06\x00\x06paused\x00\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\x00\x07stopped\x00\x00\x00\x01\xff\xff\xff\xff\x00"
    b"\norders-src\x00\x00\x00\x03\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01\x00\x03bad\x00\x00\x00\x01\xff\xff\xff\xff\x00\x0borders-"
    b"sink\x00\x00\x00\x04\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x07ok-sink\x00\x00\x00\x02\xff\xff\xff\xff\x00\x00"
    b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)
"""The metadata of a worker that had six connectors when it joined again."""
TOLD = (
    b"\x00\x02\x00\x00\x00<connect-127.0.0.1:18083-b7f5b591-d267-4929-b807-f6936ff4ad38\x00\x17http://127.0.0.1:18083/"
    b"\x00\x00\x00\x00\x00\x00\x00\x17\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)
"""Its assignment: nothing new, nothing taken away."""


def assignment(version: int, given: dict[str, list[int]], revoked: dict[str, list[int]]) -> bytes:
    writer = Writer().int16(version).int16(0).string("leader").string("http://w:8083/").int64(7)
    for pairs in (given, revoked) if version else (given,):
        writer.int32(len(pairs))
        for connector, tasks in pairs.items():
            writer.string(connector).int32s(tasks)
    return (writer.int32(0) if version else writer).done()


def test_a_worker_keeps_what_a_rebalance_does_not_take_away() -> None:
    assert connector_tasks(JOINED, TOLD) == (
        ("bad", (-1,)),
        ("ok-sink", (-1, 0)),
        ("orders-sink", (-1, 0, 1, 2)),
        ("orders-src", (-1, 0, 1)),
        ("paused", (-1, 0)),
        ("stopped", (-1,)),
    )


def test_a_rebalance_gives_and_takes() -> None:
    told = assignment(2, {"new": [-1, 0], "ok-sink": [1]}, {"orders-sink": [1, 2], "bad": [-1]})
    runs = dict(connector_tasks(JOINED, told) or ())
    assert (runs["new"], runs["ok-sink"], runs["orders-sink"]) == ((-1, 0), (-1, 0, 1), (-1, 0))
    assert "bad" not in runs and runs["paused"] == (-1, 0)


def test_an_eager_worker_has_what_it_was_told() -> None:
    metadata = Writer().int16(0).string("http://w:8083/").int64(7).done()
    assert connector_tasks(metadata, assignment(0, {"a": [1, 0]}, {})) == (("a", (0, 1)),)


def test_bytes_that_are_cut_anywhere_give_nothing() -> None:
    assert all(connector_tasks(JOINED[:at], TOLD) is None for at in range(len(JOINED)))
    assert all(connector_tasks(JOINED, TOLD[:at]) is None for at in range(len(TOLD) - 4)), (
        "the delay is not used"
    )
