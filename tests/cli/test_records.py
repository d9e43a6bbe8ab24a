"""`kview records` as people and scripts run it: lines, documents, filters, exit codes, and what is said."""

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kview.model.inspection import InspectionFailure, InspectionFailureKind
from kview.model.murmur2 import partition_for_key
from kview.model.search import Span
from kview.plain.schema import json_schema
from kview.run.records import resumed
from tests.cli.commands import KVIEW, ROOT, run_here
from tests.observe.asking import RecordBroker
from tests.observe.test_fetched_batches import batch
from tests.serve.clients import producer
from tests.served import Served

Done = subprocess.CompletedProcess[str]
PARTITIONS = 2


@pytest.fixture(scope="module")
def topic(shared_simulated: Served) -> str:
    """A topic with records of every shape."""
    name = f"records-{uuid.uuid4().hex[:8]}"
    shared_simulated.create(name, [[0, 1, 2], [1, 2, 0]], retention_ms="-1")  # its records are old
    client = producer(shared_simulated.bootstrap)

    def send(key: bytes | None, value: bytes | None, partition: int | None = None, **more: Any) -> None:
        chosen = partition_for_key(key or b"", PARTITIONS) if partition is None else partition
        client.produce(name, value, key, chosen, timestamp=1_700_000_000_000, **more)

    for number in range(200):
        status = b"FAILED" if number == 150 else b"PAID"
        send(b"order-%d" % number, b'{"id": %d,\n "status": "%s"}' % (number, status))
    send(b"gone", None, 0)
    send(None, b"\0" + pack(">i", 7) + b"\xff\x01", 0)
    send(b"odd", "a\tb – ü".encode(), 1, headers=[("trace", b"a\x1b[31m"), ("none", None)])
    assert client.flush(20) == 0
    return name


@pytest.fixture
def cluster(simulated_cluster: Served) -> Iterator[str]:
    yield simulated_cluster.bootstrap


def records(cluster: str, *arguments: str) -> Done:
    return run_here("records", cluster, *arguments)


def documents(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_flags_it_prints_the_last_of_each_partition(cluster: str, topic: str) -> None:
    done = records(cluster, topic)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 20 and all(line.startswith(f"{topic}-") for line in lines)
    odd = next(line for line in lines if "  odd  " in line)
    assert odd.endswith("  a\\tb - ?  trace=0x61 1b 5b 33 31 6d  none=null") and "2023-11-14 " in odd
    assert any("  gone  null" in line for line in lines)
    assert any("  null  0x00 00 00 00 07 ff 01" in line for line in lines)
    in_hex = records(cluster, topic, "--where", "key = order-7", "--format", "hex").stdout
    assert "0x6f 72 64 65 72 2d 37  0x7b 22 69 64" in in_hex
    in_ascii = records(cluster, topic, "--where", "key = odd", "--ascii").stdout
    assert in_ascii.isascii()


def test_documents_are_what_the_schema_says(cluster: str, topic: str) -> None:
    done = records(cluster, topic, "--where", "not key ~ ^order", "--format", "json")
    found = documents(done)
    schema = json_schema()
    validator = Draft202012Validator({"$ref": "#/$defs/RecordDocument", "$defs": schema["$defs"]})
    for document in found:
        validator.validate(document)
    gone, framed, odd = sorted(found, key=lambda document: (document["key"] or {}).get("data", "h"))
    assert (gone["value"], gone["key"]["data"], gone["partition"]) == (None, "gone", 0)
    assert framed["key"] is None and framed["value"]["kind"] == "hex"
    assert framed["value"]["data"] == "0x0000000007ff01" and framed["value"]["schema"]["id"] == 7
    assert framed["value"]["failure"] == "no schema registry is set"
    assert odd["value"]["data"] == "a\tb – ü" and odd["timestamp_ms"] == 1_700_000_000_000
    assert [(h["name"], h["value"] and h["value"]["data"]) for h in odd["headers"]] == [
        ("trace", "0x611b5b33316d"),
        ("none", None),
    ]
    assert "\x1b" not in done.stdout
    [order] = documents(records(cluster, topic, "--where", "key = order-150", "--format", "json"))
    assert order["value"]["kind"] == "json" and order["value"]["data"] == {"id": 150, "status": "FAILED"}


def test_filters_ranges_and_limits(cluster: str, topic: str) -> None:
    def ids(*arguments: str) -> list[int]:
        done = records(cluster, topic, "--format", "json", *arguments)
        assert done.returncode in (0, 1), done.stderr
        values = [document["value"] for document in documents(done)]
        return [value["data"]["id"] for value in values if value and value["kind"] == "json"]

    assert ids("--where", "value.status = FAILED") == [150]
    assert ids("--where", "value.id < 5 and key != order-3", "--limit", "2") != []
    assert len(ids("--where", "value.id < 5", "--limit", "2")) == 2
    assert sorted(ids("--where", "value.id < 5")) == [0, 1, 2, 3, 4]
    assert len(ids("--last", "3", "--partition", "1", "--where", "order")) == 2  # the last one is another
    own = partition_for_key(b"order-9", PARTITIONS)
    assert set(ids("--partition", str(own), "--where", "order-9 and value.id <= 90")) <= {9, 90}
    first = records(cluster, topic, "--offset", "1:0", "--limit", "1", "--format", "json")
    assert [(d["partition"], d["offset"]) for d in documents(first)] == [(1, 0)]
    assert ids("--from", "2023-11-14", "--to", "2023-11-13") == []
    assert len(ids("--from", "2023-11-14T00:00", "--to", "2023-11-16T00:00")) == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--where", "value.a = b c"), "at character 13: 'c' follows a condition"),
        (("--where", "status = x"), "'status' is not a field: did you mean value.status?"),
        (("--last", "3", "--from", "-1h"), "use one of --last, --from and --offset"),
        (("--offset", "7"), "'7' is not a partition and an offset: write 3:1204117"),
        (("--offset", "1:7", "--partition", "1"), "leave out --partition"),
        (("--from", "noon"), "'noon' is not a valid time"),
        (("--max-bytes", "0"), "'0' is not a valid size: write 500k, 20m or 1g"),
        (("--partition", "9"), "with partition 9: check the name"),
    ],
)
def test_bad_use(cluster: str, topic: str, arguments: tuple[str, ...], said: str) -> None:
    done = records(cluster, topic, *arguments)
    assert done.returncode == 2 and said in done.stderr and not done.stdout


def test_what_was_not_read_or_decoded_is_said_with_exit_code_1(cluster: str, topic: str) -> None:
    done = records(cluster, topic, "--where", "value.id = 12345")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("kview: 1 record could not be decoded, so the filter may have missed them\n")
    done = records(cluster, topic, "--where", "key = nothing-like-it", "--max-bytes", "100")
    assert done.returncode == 1 and "not all was read: stopped after 100 B, with" in done.stderr
    flipped = bytearray(batch(1, [b"bad"]))
    flipped[-2] ^= 1
    with RecordBroker([(0, batch(0, [b"good"])), (1, bytes(flipped))], end=2) as broker:
        done = records(str(broker.address), "invoice", "--last", "5")
        assert done.returncode == 1 and "  good" in done.stdout
        assert done.stderr == "kview: not all was read: 1 damaged batch (0:1 corrupt)\n"
        done = records(str(broker.address), "invoice", "--offset", "0:9")
        assert (done.returncode, done.stdout) == (1, "") and done.stderr == (
            "kview: not all was read: partition 0: offset 9 does not exist: the partition has 0 to 1\n"
        )
        broker.errors = [29] * 5
        done = records(str(broker.address), "invoice", "--last", "5")
        assert done.returncode == 1 and not done.stdout
        assert done.stderr.startswith("kview: not all was read: partition 0: kview is not authorized")


def test_profiles_that_read_no_records_and_clusters_out_of_reach(cluster: str, tmp_path: Path) -> None:
    folder = tmp_path / "kview"
    folder.mkdir()
    (folder / "config.toml").write_text(f'[clusters.prod]\nservers = "{cluster}"\nno-records = true\n')
    done = run_here("records", "prod", "any", environment={"XDG_CONFIG_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "") and "has no-records" in done.stderr
    assert run_here("records", "127.0.0.1:1", "any").returncode == 3
    assert run_here("records", cluster, "not-there").returncode == 2
    done = run_here("records", cluster, "\udcff")
    assert done.returncode == 2 and "is not UTF-8" in done.stderr


def test_a_reader_that_ends_early_is_not_an_error(cluster: str, topic: str) -> None:
    command = [*KVIEW, "records", cluster, topic, "--where", "order"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert (process.wait(30), process.stderr.read()) == (0, b"")


def test_a_leader_that_dies_is_waited_for_until_another_one_leads(simulated_cluster: Served) -> None:
    name = f"records-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[0, 1, 2], [5, 4, 3]])
    client = producer(simulated_cluster.bootstrap)
    for partition in (0, 1):
        client.produce(name, b"v", b"k%d" % partition, partition)
    assert client.flush(20) == 0
    try:
        simulated_cluster.do("crash 5")
        done = records(simulated_cluster.bootstrap, name, "--where", "k0 or k1")
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 2
    finally:
        simulated_cluster.do("start 5")


def test_partitions_are_read_on_from_where_they_were_whatever_was_deleted_meanwhile() -> None:
    silent = InspectionFailure(InspectionFailureKind.NO_ANSWER, 1)
    out_of_range = InspectionFailure(InspectionFailureKind.OFFSET_OUT_OF_RANGE, 1, offset=0)
    left = Span(0, 0, 40, 10, 4_000, silent)
    assert resumed(left, Span(0, 25, 60, 25)) == Span(0, 0, 60, 10)
    assert resumed(left, Span(0, 25, 60, 25, failure=out_of_range)) == Span(0, 0, 60, 10)
    assert resumed(left, Span(0, failure=silent)) == left
    assert resumed(left, Span(0, 0, 7, 0)) == Span(0, 0, 7, 7)  # an unclean leader has less
    assert resumed(Span(0, 9, 40, 10, failure=silent), Span(0, 0, 7, 0)) == Span(0, 7, 7, 7)
    unknown = Span(0, failure=silent)
    assert resumed(unknown, Span(0, 25, 60, 25)) == Span(0, 25, 60, 25)
    assert resumed(unknown, None) == unknown
