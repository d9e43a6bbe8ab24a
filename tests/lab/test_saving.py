"""A cluster in a folder: what is saved is there again, whatever happened before, and nothing else."""

import asyncio
import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kview.errors import BadUse, ErrorKind, KviewError
from kview.lab.saving import DOCUMENT, LOCK, SEGMENT, DataFolder, _source
from kview.lab.serving import Plan, _Run
from kview.simulate.acls import Acl, AclOperation, Acls, PatternType, Permission, ResourceType
from kview.simulate.client_quotas import Quotas
from kview.simulate.cluster import Cluster, build
from kview.simulate.codes import ErrorCode
from kview.simulate.log import Log
from kview.simulate.metadata import TopicPartition
from kview.simulate.records import TRANSACTIONAL, Marker, encode_batch
from kview.simulate.requests.records import Acks, EndedTransaction
from kview.simulate.results import ProduceResult
from kview.simulate.saved import kept_batches
from kview.simulate.scram import ScramCredential, ScramMechanism
from kview.simulate.tokens import DelegationToken, Principal
from tests.simulate.chaos import HEALING_SECONDS
from tests.simulate.chaos_worlds import ChaosWorld
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, partition, replica
from tests.simulate.invariants import Checker

BROKERS = (0, 1, 2)
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
QUICK = {"log.cleaner.backoff.ms": "1000", "replica.lag.time.max.ms": "2000"}


FOUND = (
    471,  # a leader whose log begins earlier than that of the one before went on with its file
    533,  # the last leader that was known did not lead again
    597,  # the same as the first, where nothing was left in the file
)


def wall(cluster: Cluster) -> int:
    return cluster.kernel.now_us // 1000


def started(cluster: Cluster, folder: DataFolder) -> Cluster:
    """The cluster that the folder has, with every invariant checked."""
    again = build(cluster.world, cluster.kernel.seed, wall(cluster), folder.saved)
    Checker(again, every_event=True)
    go(again, 1)
    return again


def restarted(cluster: Cluster, path: Path) -> Cluster:
    """Save a cluster, and start it again."""
    folder = DataFolder(path, cluster.broker_ids())
    folder.close(cluster, wall(cluster))
    return opened(cluster, path)


def opened(cluster: Cluster, path: Path) -> Cluster:
    folder = DataFolder(path, cluster.broker_ids())
    os.close(folder._lock)
    return started(cluster, folder)


def write(
    cluster: Cluster, *records: tuple[bytes | None, bytes], acks: int = -1, **how: int
) -> ProduceResult:
    """Write a batch to whoever leads partition 0."""
    results: list[ProduceResult] = []
    batch = encode_batch([(key, value, wall(cluster)) for key, value in records], **how)
    cluster.records.produce(
        partition(cluster).leader, TOPIC, 0, batch, Acks(acks, 1000, results.append), admit
    )
    go(cluster, 0.2)
    return results[0] if results else ProduceResult(ErrorCode.REQUEST_TIMED_OUT)


def admit(producer_id: int, epoch: int, then: Callable[[ErrorCode], None]) -> None:
    """Let every transaction have every partition."""
    then(ErrorCode.NONE)


def content(log: Log) -> tuple[Any, ...]:
    """A log's offsets, and the bytes and epochs of its batches."""
    return (
        log.start,
        log.end,
        [(base, batch[16:], epoch) for base, batch, epoch in kept_batches(log, log.start)],
    )


def contents(cluster: Cluster) -> dict[TopicPartition, tuple[Any, ...]]:
    """The content of each partition."""
    found = {}
    image = cluster.metadata.image
    for key, _ in image.all_partitions():
        source = _source(cluster, key, cluster.partitions.replicas(key, image.topics[key[0]].topic_id))
        assert source is not None
        found[key] = content(source.log)
    return found


def kept(folder: DataFolder) -> dict[TopicPartition, tuple[Any, ...]]:
    """The same of what a folder has."""
    assert folder.saved is not None
    return {key: content(saved.log) for key, saved in folder.saved.logs.items()}


def test_records_settings_rules_and_users_are_there_again(tmp_path: Path) -> None:
    cluster = cluster_of(configs={"retention.ms": "-1"})
    rule = Acl(
        ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", AclOperation.READ, Permission.ALLOW
    )
    credential, bob = ScramCredential(b"salt", b"\xff\x00", b"key", 4096), Principal("User", "bob")
    cluster.metadata.commit(
        {},
        scram={("ä", ScramMechanism.SHA_512): credential},
        acls=Acls([rule]),
        client_quotas={(("client-id", None), ("user", "u")): {"producer_byte_rate": 1024.5}},
        broker_configs={"": {"min.insync.replicas": "2"}},
        group_configs={"g": {"consumer.session.timeout.ms": "50000"}},
        tokens={"id": DelegationToken("id", bob, bob, (bob,), 1, 2, 3)},
    )
    assert cluster.quorum.change_voters([102, 103])
    go(cluster, 1)
    write(cluster, (b"k", b"1"), (None, b"2"))
    before, image = contents(cluster), cluster.metadata.image
    again = restarted(cluster, tmp_path)
    assert contents(again) == before
    now = again.metadata.image
    assert (now.cluster_id, now.scram, list(now.acls), now.client_quotas) == (
        image.cluster_id, image.scram, list(image.acls), image.client_quotas,
    )  # fmt: skip
    assert (now.broker_configs, now.group_configs, now.features, now.tokens) == (
        image.broker_configs, image.group_configs, image.features, image.tokens,
    )  # fmt: skip
    assert again.quorum.voters == cluster.quorum.voters == (102, 103)
    assert now.topics[TOPIC].topic_id == image.topics[TOPIC].topic_id
    assert now.topics[TOPIC].configs == {"retention.ms": "-1"}
    assert partition(again).leader_epoch == partition(cluster).leader_epoch + 1
    assert write(again, (None, b"3")).base_offset == 2
    assert len(replica(again, 1).log.spans) == 2 and again.healthy()


def test_another_start_gives_other_ids(tmp_path: Path) -> None:
    cluster = cluster_of()
    given = cluster.records.init_producer_id(0).producer_id
    again = restarted(cluster, tmp_path)
    third = restarted(again, tmp_path)
    ids = [each.records.init_producer_id(0).producer_id for each in (again, third)]
    assert [given, *ids] == [0, 1000, 2000]
    numbers = {each.kernel.random("topic-ids").getrandbits(64) for each in (cluster, again, third)}
    assert len(numbers) == 3


def test_open_and_aborted_transactions_and_sequence_numbers_are_known(tmp_path: Path) -> None:
    cluster = cluster_of()
    batch = {"producer_epoch": 0, "attributes": TRANSACTIONAL}
    for producer, commits in ((1, False), (2, True), (3, None)):
        write(cluster, (None, b"a"), (None, b"b"), producer_id=producer, base_sequence=0, **batch)
        if commits is not None:
            ended = EndedTransaction(producer, 0, Marker(commits, 0))
            cluster.records.write_marker(0, (TOPIC, 0), ended, lambda error: None)
            go(cluster, 0.2)
    again = restarted(cluster, tmp_path)
    before, now = replica(cluster, 0), replica(again, partition(again).leader)
    assert list(now.log.aborted(0, 99)) == list(before.log.aborted(0, 99)) != []
    assert now.last_stable() == before.last_stable() == 6
    assert now.high_watermark == 8
    assert now.producer_states().active() == before.producer_states().active()
    duplicate = write(again, (None, b"a"), (None, b"b"), producer_id=3, base_sequence=0, **batch)
    assert (duplicate.error_code, duplicate.base_offset) == (0, 6)
    assert write(again, (None, b"c"), producer_id=3, base_sequence=7, **batch).error_code == 45


def test_a_cluster_whose_brokers_were_all_down_comes_back(tmp_path: Path) -> None:
    cluster = cluster_of(settings=QUICK)
    write(cluster, (None, b"1"))
    cluster.faults.crash(1)
    go(cluster, 12)
    write(cluster, (None, b"2"))
    cluster.faults.crash(2)
    go(cluster, 12)
    write(cluster, (None, b"3"), acks=1)
    cluster.faults.crash(0)
    go(cluster, 12)
    assert partition(cluster).leader == -1
    again = restarted(cluster, tmp_path)
    assert partition(again).leader == 0, "the last one that was in sync"
    assert replica(again, 0).log.end == 3
    go(again, 5)
    assert again.healthy() and [replica(again, b).log.end for b in BROKERS] == [3, 3, 3]


def test_topics_of_flags_are_made_if_they_are_missing_and_the_others_stay(tmp_path: Path) -> None:
    cluster = cluster_of(partitions=2)
    write(cluster, (None, b"1"))
    more = replace(cluster.world.topics[0], name="more")
    folder = DataFolder(tmp_path, BROKERS)
    folder.close(cluster, wall(cluster))
    world = replace(cluster.world, topics=(*cluster.world.topics, more))
    again = build(world, 1, wall(cluster), DataFolder(tmp_path, BROKERS).saved)
    go(again, 1)
    assert set(again.metadata.image.topics) == {TOPIC, "more", "__consumer_offsets"}
    assert replica(again, 0).log.end == 1 and again.healthy()


def settle(folder: DataFolder, cluster: Cluster) -> dict[TopicPartition, tuple[Any, ...]]:
    """Save, and return what must be read again."""
    folder.save(cluster, wall(cluster))
    assert folder._writing is not None
    folder._writing.join()
    assert folder.warning is None
    return contents(cluster)


@pytest.mark.quick(4)
@pytest.mark.parametrize("seed", [*range(30), *FOUND])
def test_whatever_happens_between_two_saves_the_last_one_is_read_again(tmp_path: Path, seed: int) -> None:
    """Batches are appended, logs are truncated, cleaned and deleted from, leaders change, topics go."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    unclean = {"unclean.leader.election.enable": "true"} if seed % 2 else {}
    cluster = cluster_of(settings=QUICK, configs={**COMPACTED, **unclean})
    folder = DataFolder(tmp_path / "data", BROKERS)
    saved = settle(folder, cluster)
    for number in range(40):
        live = [b for b in BROKERS if cluster.nodes.by_id[b].running]
        match chance.randrange(8):
            case 0 if len(live) > 1:
                cluster.faults.crash(chance.choice(live))
            case 1:
                cluster.faults.undo()
            case 2:
                go(cluster, chance.choice([1, 5, 15]))
            case 3:
                saved = settle(folder, cluster)
            case 4 if partition(cluster).leader in live and number % 2:
                leader = replica(cluster, partition(cluster).leader)
                if leader.leading and leader.high_watermark > leader.log.start:
                    cluster.retention.move_start(
                        leader, chance.randint(leader.log.start, leader.high_watermark)
                    )
            case _ if partition(cluster).leader in live:
                keys = [b"%d" % chance.randrange(4) for _ in range(chance.randint(1, 4))]
                write(cluster, *((key, b"%d" % number) for key in keys), acks=chance.choice([1, -1]))
    shutil.copytree(tmp_path / "data", tmp_path / "killed")  # as kill −9 would leave it
    killed = DataFolder(tmp_path / "killed", BROKERS)
    assert kept(killed) == saved
    last = contents(cluster)
    folder.close(cluster, wall(cluster))
    assert kept(DataFolder(tmp_path / "data", BROKERS)) == last
    again = started(cluster, killed)
    go(again, 20)
    assert again.healthy()


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    cluster = cluster_of()
    folder = DataFolder(tmp_path, BROKERS)
    write(cluster, (None, b"1" * 1000))
    settle(folder, cluster)
    file = tmp_path / "t-0" / SEGMENT
    before = file.stat()
    write(cluster, (None, b"2" * 1000))
    settle(folder, cluster)
    assert file.stat().st_ino == before.st_ino and before.st_size < file.stat().st_size < 3000
    folder.save(cluster, wall(cluster))
    assert folder._writing is not None and not folder._writing.is_alive(), "nothing has changed"
    assert {each.name for each in tmp_path.iterdir()} == {DOCUMENT, LOCK, "t-0"}
    assert file.stat().st_mode & 0o077 == 0 and (tmp_path / DOCUMENT).stat().st_mode & 0o077 == 0


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def edited(change: Callable[[Any], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / DOCUMENT
        document = json.loads(file.read_bytes())
        change(document)
        file.write_text(json.dumps(document))

    return edit


def without(folder: Path, name: str) -> None:
    (folder / name).unlink()


WRONG: Sequence[tuple[Callable[[Path], Any], ErrorKind]] = [
    (lambda folder: flipped(folder / "t-0" / SEGMENT), ErrorKind.DATA_DAMAGED),
    (lambda folder: os.truncate(folder / "t-0" / SEGMENT, 50), ErrorKind.DATA_DAMAGED),
    (lambda folder: without(folder, f"t-0/{SEGMENT}"), ErrorKind.DATA_DAMAGED),
    (lambda folder: without(folder, DOCUMENT), ErrorKind.DATA_DAMAGED),
    (lambda folder: os.truncate(folder / DOCUMENT, 50), ErrorKind.DATA_DAMAGED),
    (lambda folder: (folder / DOCUMENT).write_bytes(b"\xff"), ErrorKind.DATA_DAMAGED),
    (lambda folder: without(folder, LOCK), ErrorKind.DATA_NOT_EMPTY),
    (edited(lambda document: document.update(format=2)), ErrorKind.DATA_FORMAT),
    (edited(lambda document: document.update(brokers=[0, 1, 2, 3])), ErrorKind.DATA_OF_OTHER_BROKERS),
    (edited(lambda document: document.pop("topics")), ErrorKind.DATA_DAMAGED),
    (edited(lambda document: document["logs"].pop("t")), ErrorKind.DATA_DAMAGED),
    (edited(lambda document: document["topics"][0].update(name="../t")), ErrorKind.DATA_DAMAGED),
    (
        edited(lambda document: document["topics"][0]["partitions"][0].__setitem__(3, [7])),
        ErrorKind.DATA_DAMAGED,
    ),
    (edited(lambda document: document["logs"]["t"][0].__setitem__(1, 1)), ErrorKind.DATA_DAMAGED),
]


@pytest.mark.parametrize(("harm", "kind"), WRONG)
def test_what_is_not_understood_is_refused_and_left_as_it_is(
    tmp_path: Path, harm: Callable[[Path], Any], kind: ErrorKind
) -> None:
    cluster = cluster_of()
    write(cluster, (None, b"1"), (None, b"2"))
    folder = DataFolder(tmp_path, BROKERS)
    folder.close(cluster, wall(cluster))
    harm(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(BadUse) as refused:
        DataFolder(tmp_path, BROKERS)
    assert refused.value.kind is kind
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != LOCK}
    assert after == {path: data for path, data in before.items() if path.name != LOCK}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "new" / "er", BROKERS)
    with pytest.raises(BadUse) as refused:
        DataFolder(tmp_path / "new" / "er", BROKERS)
    assert refused.value.kind is ErrorKind.DATA_IN_USE
    folder.close(cluster_of(), START_MS)
    DataFolder(tmp_path / "new" / "er", BROKERS)


def test_a_folder_of_others_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    for path, kind in (
        (tmp_path, ErrorKind.DATA_NOT_EMPTY),
        (tmp_path / "mine.txt", ErrorKind.DATA_NOT_OPENED),
    ):
        with pytest.raises(BadUse) as refused:
            DataFolder(path, BROKERS)
        assert refused.value.kind is kind
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


def test_what_cannot_be_written_is_said_and_written_later(tmp_path: Path) -> None:
    cluster = cluster_of()
    folder = DataFolder(tmp_path, BROKERS)
    settle(folder, cluster)
    write(cluster, (None, b"1"))
    (tmp_path / "t-0").write_text("in the way")
    folder.save(cluster, wall(cluster))
    assert folder._writing is not None
    folder._writing.join()
    assert folder.warning is not None and folder.warning.kind is ErrorKind.DATA_NOT_SAVED
    (tmp_path / "t-0").unlink()
    saved = settle(folder, cluster)
    (tmp_path / (DOCUMENT + ".new")).mkdir()
    write(cluster, (None, b"2"))
    with pytest.raises(KviewError) as failed:
        folder.close(cluster, wall(cluster))
    assert failed.value.kind is ErrorKind.DATA_NOT_SAVED
    assert contents(opened(cluster, tmp_path)) == saved, "as of the last save that was whole"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world_seed" in metafunc.fixturenames:
        metafunc.parametrize("world_seed", range(metafunc.config.getoption("--worlds")))


def test_a_world_whose_disks_fail_is_there_again_with_all_that_was_acknowledged(
    tmp_path: Path, world_seed: int
) -> None:
    world = ChaosWorld(world_seed, disks=True, traffic=False)
    print(f"seed {world_seed}")
    world.disturb(20)
    again = restarted(world.cluster, tmp_path)
    go(again, HEALING_SECONDS)
    for key, p in again.metadata.image.all_partitions():
        assert p.offline == () and set(p.isr) == {*p.replicas}, key
    for broker in again.brokers.values():
        counts = [len(found.rows) for found in again.descriptions.log_dirs(broker.id)]
        assert sum(counts) == len(broker.replicas) and all(n >= 0 for n in broker.dirs._replicas)
    world.clients.check_records(again)


@pytest.mark.parametrize("report_s", [0, 2])
def test_a_lost_directory_is_empty_and_works_after_the_restart(tmp_path: Path, report_s: float) -> None:
    """Whether the controllers had heard of it or not, nobody follows the empty log."""
    cluster = cluster_of(partitions=6, settings={"log.dirs": "a,b"})
    go(cluster, 2)
    assert write(cluster, (None, b"kept")).error_code is ErrorCode.NONE
    broker = partition(cluster).leader
    lost = cluster.brokers[broker].replicas[TOPIC, 0].directory
    cluster.brokers[broker].dirs.lost.add(lost)
    cluster.brokers[broker].fail_dir(lost)
    go(cluster, report_s)
    again = restarted(cluster, tmp_path)
    found = [again.metadata.image.partition(TOPIC, number) for number in range(6)]
    assert all(one is not None and one.offline == () and one.leader >= 0 for one in found)
    go(again, 5)
    assert replica(again, broker).log.end == 1 and set(partition(again).isr) == {0, 1, 2} and again.healthy()
    rows = [len(found.rows) for found in again.descriptions.log_dirs(broker)]
    assert abs(rows[0] - rows[1]) <= 1 and sum(rows) > 2, "the replicas are spread over the directories"


def test_what_only_a_lost_directory_had_does_not_come_back(tmp_path: Path) -> None:
    cluster = cluster_of(partitions=6, replication=1, settings={"log.dirs": "a,b"})
    go(cluster, 2)
    assert write(cluster, (None, b"lost")).error_code is ErrorCode.NONE
    broker = partition(cluster).leader
    lost = replica(cluster, broker).directory
    cluster.brokers[broker].dirs.lost.add(lost)
    cluster.brokers[broker].fail_dir(lost)
    go(cluster, 2)
    again = restarted(cluster, tmp_path)
    assert partition(again).leader == broker and replica(again, broker).log.end == 0


def failed_save(folder: DataFolder, cluster: Cluster) -> str:
    """Save, and return why that failed."""
    folder.save(cluster, wall(cluster))
    assert folder._writing is not None
    folder._writing.join()
    assert folder.warning is not None and folder.warning.kind is ErrorKind.DATA_NOT_SAVED
    return str(folder.warning.values["reason"])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.1])
def test_every_number_that_a_client_may_set_as_a_quota_is_read_again(tmp_path: Path, value: float) -> None:
    cluster = cluster_of()
    quotas: Quotas = {(("user", "bob"),): {"request_percentage": value}}
    cluster.metadata.commit({}, client_quotas=quotas)
    assert repr(restarted(cluster, tmp_path).metadata.image.client_quotas) == repr(quotas)


def test_what_could_not_be_read_again_never_replaces_what_can(tmp_path: Path) -> None:
    cluster = cluster_of()
    folder = DataFolder(tmp_path / "data", BROKERS)
    saved = settle(folder, cluster)
    wrong: Any = {(("user", "bob"),): {"request_percentage": "much"}}
    cluster.metadata.commit({}, client_quotas=wrong)
    assert "much" in failed_save(folder, cluster)
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    assert kept(DataFolder(tmp_path / "killed", BROKERS)) == saved
    cluster.metadata.commit({}, client_quotas={})
    settle(folder, cluster)


def test_a_failure_is_over_once_there_is_nothing_left_to_save(tmp_path: Path) -> None:
    cluster = cluster_of()
    folder = DataFolder(tmp_path, BROKERS)
    settle(folder, cluster)
    last = folder._last
    assert last is not None
    folder._last = msgspec.structs.replace(last, offset=-1)  # as if something had changed, and changed back
    (tmp_path / (DOCUMENT + ".new")).mkdir()
    failed_save(folder, cluster)
    folder._last = last
    folder.close(cluster, wall(cluster))
    assert folder.warning is None


def test_a_save_that_fails_after_the_document_is_whole_harms_nothing(tmp_path: Path) -> None:
    cluster = cluster_of()
    write(cluster, (None, b"1"))
    write(cluster, (None, b"2"))
    (tmp_path / "data").mkdir()
    folder = DataFolder(tmp_path / "data", BROKERS)
    in_the_way = tmp_path / "data" / "t-0" / SEGMENT
    in_the_way.mkdir(parents=True)
    failed_save(folder, cluster)
    saved = contents(cluster)
    in_the_way.rmdir()
    leader = replica(cluster, partition(cluster).leader)
    cluster.retention.move_start(leader, 1)
    (tmp_path / "data" / (DOCUMENT + ".new")).mkdir()
    failed_save(folder, cluster)
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    assert kept(DataFolder(tmp_path / "killed", BROKERS)) == saved
    (tmp_path / "data" / (DOCUMENT + ".new")).rmdir()
    write(cluster, (None, b"3"))
    last = settle(folder, cluster)
    shutil.copytree(tmp_path / "data", tmp_path / "later")
    assert kept(DataFolder(tmp_path / "later", BROKERS)) == last


def test_time_that_was_let_pass_is_saved_alone(tmp_path: Path) -> None:
    cluster = cluster_of()
    folder = DataFolder(tmp_path, BROKERS)
    settle(folder, cluster)
    before = (tmp_path / DOCUMENT).stat().st_ino
    folder.save(cluster, wall(cluster) - 20)
    assert folder._writing is not None
    folder._writing.join()
    assert (tmp_path / DOCUMENT).stat().st_ino == before, "the clocks are the same but for a moment"
    folder.close(cluster, wall(cluster) - 86_400_000)
    assert DataFolder(tmp_path, BROKERS).ahead_ms == 86_400_000


def test_the_first_save_of_another_process_is_not_taken_for_damage(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, BROKERS)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / SEGMENT).touch()
    with pytest.raises(BadUse) as refused:
        DataFolder(tmp_path, BROKERS)
    assert refused.value.kind is ErrorKind.DATA_IN_USE
    os.close(folder._lock)


def test_each_start_is_another_cluster_unless_it_is_kept(tmp_path: Path) -> None:
    def start(data: DataFolder | None = None) -> Cluster:
        films: Any = SimpleNamespace
        return _Run(Plan(cluster_of().world, 1, (), data=data), None, films, None)._cluster

    one, other = (start().metadata.image for _ in range(2))
    assert one.cluster_id != other.cluster_id and len(one.cluster_id) == 22
    assert one.topics == other.topics, "the seed places the same partitions"
    first = start()
    go(first, 1)
    DataFolder(tmp_path, first.broker_ids()).close(first, wall(first))
    folder = DataFolder(tmp_path, first.broker_ids())
    os.close(folder._lock)
    assert start(folder).metadata.image.cluster_id == first.metadata.image.cluster_id


def test_a_cluster_that_cannot_be_collected_ends_the_run() -> None:
    class Broken:
        warning = None

        def save(self, cluster: object, wall_ms: int) -> None:
            raise LookupError("a bug")

    run: Any = SimpleNamespace(_plan=SimpleNamespace(data=Broken()), _has_warned=False, _cluster=None)
    loop = asyncio.new_event_loop()
    failures: list[Exception] = []
    _Run._save(run, loop, failures.append)
    loop.close()
    assert [type(each) for each in failures] == [LookupError]
