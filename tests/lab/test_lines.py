"""Typed lines are answered in sentences, on a cluster without sockets."""

import pytest

from kview.lab.console import Console
from kview.lab.lines import MAX_LINE_BYTES, answer, lines_of
from kview.simulate.cluster import build
from kview.simulate.world import default_world


@pytest.fixture(scope="module")
def console() -> Console:
    cluster = build(default_world(brokers=3, racks=1, traffic=False), 1, 1_760_000_000_000)
    return Console(cluster, cluster.counters, lambda: 0, lambda: None)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (  # first, because no time passes in which another controller could be elected
            ["crash 102", "crash-controller"],
            "ok the active controller 101 was killed: too few controllers are left to elect a new one;"
            " to undo it: start 101",
        ),
        (
            ["crash 1"],
            "ok broker 1 was killed (kill −9): its port refuses connections; it is fenced when its"
            " session ends; to undo it: start 1",
        ),
        (["crash 1", "hang 1"], "error broker 1 is already down: start 1 restores it"),
        (["hang 1", "slow 1 5ms"], "error broker 1 is hung: start 1 restores it"),
        (["crash 101"], "ok controller 101 was killed (kill −9); to undo it: start 101"),
        (
            ["crash 102", "crash 103", "crash 1"],
            "ok broker 1 was killed (kill −9): its port refuses connections; nobody can fence it without a"
            " majority of the controllers; to undo it: start 1",
        ),
        (["lose-rack R1"], "ok every broker in rack R1 has lost power; to undo it: undo"),
        (
            ["lose-rack R1", "lose-rack R1"],
            "error every broker in rack R1 is already down: undo restores every node",
        ),
        (["lose-rack R9"], "error there is no rack 'R9': available racks: R1"),
        (["start 1"], "error broker 1 is running normally: nothing to start"),
        (["crash 1", "start 1"], "ok broker 1 was started: it rejoins the ISRs once it has caught up"),
        (["undo"], "ok no fault in force"),
        (["crash 1", "undo"], "ok all faults undone; nodes that were down are starting"),
        (
            ["slow 1 20ms", "hang 1", "status"],
            "ok 3 brokers, 3 controllers; faults in force: broker 1 hung; broker 1 slow 20 ms",
        ),
        (["crash 9"], "error there is no node 9: the brokers are 0 to 2, the controllers 101, 102, 103"),
        (["slow 1 fast"], "error 'fast' is not a valid latency: give 1ms to 60000ms, such as 200ms or 2s"),
        (
            ["isolate 1"],
            "ok broker 1 reaches no other node, only its clients: it is fenced when its session ends; to undo"
            " it: start 1",
        ),
        (["isolate 1", "isolate 1"], "error broker 1 is already isolated: start 1 restores it"),
        (["isolate 1", "start 1"], "ok broker 1 reaches every other node again"),
        (
            ["cut 1 101"],
            "ok no packet arrives between nodes 1 and 101; clients still reach both; to undo it: join 1 101",
        ),
        (
            ["cut 1 101", "cut 101 1"],
            "error nodes 101 and 1 are already cut off: join 101 1 restores it",
        ),
        (
            ["cut 1 101", "cut-one-way 101 1"],
            "error nodes 101 and 1 are already cut off: join 101 1 restores it",
        ),
        (
            ["cut-one-way 1 0", "cut-one-way 0 1", "status"],
            "ok 3 brokers, 3 controllers; faults in force: network cut between 0 and 1",
        ),
        (
            ["cut-one-way 101 2", "cut 1 0", "cut 0 2", "isolate 102", "status"],
            "ok 3 brokers, 3 controllers; faults in force: controller 102 isolated; network cut between 0 and"
            " 1 and 2; network cut from 101 to 2",
        ),
        (["cut 1 0", "start 0"], "ok broker 0 reaches every other node again"),
        (["cut 1 0", "join 0 1"], "ok nodes 0 and 1 reach each other again"),
        (["join 0 1"], "error nodes 0 and 1 reach each other: nothing to join"),
        (["cut 1 0", "join-all"], "ok all nodes reach each other again"),
        (["join-all"], "error no network between nodes is cut: nothing to join"),
        (["cut 1 1"], "error 1 is one node: name two nodes, such as 0 101"),
        (["cut 1 9"], "error there is no node 9: the brokers are 0 to 2, the controllers 101, 102, 103"),
        (
            ["lose-disk 1"],
            "ok broker 1 has lost its disk and ends: it comes back without what was there; to undo it:"
            " repair-disk 1",
        ),
        (
            ["fill-disk 1", "status"],
            "ok 3 brokers, 3 controllers; faults in force: broker 1 disk full",
        ),
        (
            ["slow-disk 1 50ms"],
            "ok the disks of broker 1 are slow: each append, and each fetch over the network, takes 50 ms"
            " longer; to undo it: repair-disk 1",
        ),
        (["slow-disk 1 50ms", "start 1"], "ok the disks of broker 1 are no longer slowed down"),
        (
            ["slow-disk 1 50ms", "repair-disk 1"],
            "ok the disks of broker 1 work again: it starts again if one had failed, and copies what it"
            " lacks",
        ),
        (["repair-disk 1"], "error the disks of broker 1 work: nothing to repair"),
        (
            ["fill-disk 1", "fill-disk 1"],
            "error broker 1 has no other log directory: repair-disk 1 restores it",
        ),
        (["lose-disk 101"], "error there is no broker 101: available brokers: 0, 1, 2"),
        (["quit"], "ok the cluster ends"),
    ],
)
def test_a_line_is_answered_in_a_sentence(console: Console, lines: list[str], said: str) -> None:
    answer(console, "undo")
    assert [answer(console, line) for line in lines][-1] == said


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["rate audit-service 20"],
            "ok audit-service now sends 20 records/s; to undo it: rate audit-service 1000",
        ),
        (["pause billing", "pause billing"], "ok the members of billing have stopped reading but still send"),
        (
            ["pause-producer audit-service", "rate audit-service 7"],
            "ok audit-service now sends 7 records/s; to undo it: rate audit-service 1000",
        ),
        (
            ["set invoice min.insync.replicas=2"],
            "ok invoice now has min.insync.replicas=2; to undo it: unset invoice min.insync.replicas",
        ),
        (
            ["rate nobody 20"],
            "error there is no producer named 'nobody': available producers: invoice-service,"
            " payment-service, audit-service",
        ),
        (
            ["rate audit-service much"],
            "error 'much' is not an amount: give a number, such as 500, 20k or 1.5M",
        ),
        (
            ["rate audit-service"],
            "error 'rate' needs a producer and records per second: write rate ",
        ),
        (["rate audit-service 2G"], "error 2,000,000,000 is not between 0 and 1,000,000: give a number"),
        (["pause nobody"], "error there is no group named 'nobody': available groups: billing, reporting,"),
        (
            ["remove-member audit-export"],
            "error audit-export has no members: add one first: add-member audit-export",
        ),
        (["bandwidth 9 1k"], "error there is no broker 9: available brokers: 0, 1, 2"),
        (["bandwidth one 1k"], "error 'one' is not a valid node id"),
        (["bandwidth 1 20k"], "ok the network of broker 1 now carries 20 kB/s each way"),
        (["set payment min.insync.replicas=1"], "ok payment now has min.insync.replicas=1"),
        (["set payment nonsense=1"], "error the cluster refuses to change payment: Unknown topic config"),
        (["set nothing a=1"], "error the cluster refuses to change nothing: The topic 'nothing' does not"),
        (["elect payment"], "error the cluster refuses to change payment: every partition has a leader"),
        (["raet audit-service 20"], "error unknown command 'raet': did you mean rate?"),
    ],
)
def test_an_adjustment_is_answered_in_a_sentence(lines: list[str], said: str) -> None:
    cluster = build(default_world(brokers=3, racks=1), 1, 1_760_000_000_000)
    with_traffic = Console(cluster, cluster.counters, lambda: 0, lambda: None)
    last = [answer(with_traffic, line) for line in lines][-1]
    assert last.startswith(said)


CHANGES = (
    "rate invoice-service 7000",
    "rate invoice-service 0.5",
    "pause-producer audit-service",
    "rate audit-service 3",
    "pause billing",
    "add-member billing",
    "kill-member reporting",
    "add-member audit-export",
    "remove-member audit-export",
    "set payment min.insync.replicas=3",
    "set invoice min.insync.replicas=2",
    "bandwidth 1 1M",
)


def test_undo_brings_back_everything_that_was_adjusted() -> None:
    cluster = build(default_world(), 1, 1_760_000_000_000)
    console = Console(cluster, cluster.counters, lambda: 0, lambda: None)
    before = cluster.adjustments.settings()
    for line in CHANGES:
        assert answer(console, line).startswith("ok ")
        cluster.run_until(cluster.kernel.now_us + 1_000_000)
    assert cluster.adjustments.settings() != before
    assert answer(console, "undo") == "ok 9 changes of the lab undone"
    cluster.run_until(cluster.kernel.now_us + 10_000_000)
    assert cluster.adjustments.settings() == before
    assert answer(console, "undo") == "ok no fault in force"


@pytest.mark.parametrize("line", CHANGES)
def test_the_line_that_undoes_an_adjustment_undoes_it(line: str) -> None:
    cluster = build(default_world(), 1, 1_760_000_000_000)
    console = Console(cluster, cluster.counters, lambda: 0, lambda: None)
    if line.startswith("remove-member audit"):
        answer(console, "add-member audit-export")
    before = cluster.adjustments.settings()
    undo = answer(console, line).partition("; to undo it: ")[2]
    cluster.run_until(cluster.kernel.now_us + 1_000_000)
    assert answer(console, undo).startswith("ok ")
    cluster.run_until(cluster.kernel.now_us + 10_000_000)
    assert cluster.adjustments.settings() == before


def test_without_controllers_there_is_none_to_kill(console: Console) -> None:
    for node in (101, 102, 103):
        answer(console, f"crash {node}")
    assert answer(console, "crash-controller") == (
        "error there is no active controller: undo restores every node"
    )


def test_counters_are_one_line_of_json(console: Console) -> None:
    said = answer(console, "counters")
    assert said.startswith("ok {") and "\n" not in said


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"crash 1\nundo\n"], ["crash 1", "undo"]),
        ([b"cra", b"sh 1\n\n  \nun", b"do\n"], ["crash 1", "undo"]),
        ([b"crash 1\nundo"], ["crash 1", "undo"]),
        ([b"x" * MAX_LINE_BYTES, b"x" * 9000, b"x crash 1\nundo\n"], [None, "undo"]),
        ([b"x" * 9000], [None]),
        ([b"\n", b" "], []),
    ],
)
def test_lines_come_whole_and_a_too_long_one_is_not_carried_out(
    chunks: list[bytes], lines: list[str | None]
) -> None:
    assert list(lines_of(iter([*chunks, b""]).__next__)) == lines


def test_a_too_long_line_is_answered_with_one(console: Console) -> None:
    assert answer(console, None) == "error the line is longer than 4096 bytes: write one command per line"


def test_a_broker_with_two_directories_goes_on_without_one() -> None:
    world = default_world(brokers=3, racks=1, traffic=False, settings={"log.dirs": "a,b"})
    cluster = build(world, 1, 1_760_000_000_000)
    console = Console(cluster, cluster.counters, lambda: 0, lambda: None)
    assert answer(console, "lose-disk 1") == (
        "ok a log directory of broker 1 has failed: its replicas there are offline; to undo it: repair-disk 1"
    )
    assert answer(console, "fill-disk 1").startswith("ok the disk of broker 1 is full: it ends within 5 s")
    assert answer(console, "status").endswith("faults in force: broker 1 disk lost; broker 1 disk full")
    assert answer(console, "undo") == "ok all faults undone; nodes that were down are starting"
