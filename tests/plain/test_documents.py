"""The JSON document: what the schema says of it is true, and what it says of a silent broker."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import events, findings
from kview.model.decoded import Decoded, DecodedRecord, DecodeFailure, DecodeFailureKind, SchemaId
from kview.model.failures import Cause, FailureKind
from kview.model.snapshot import Snapshot
from kview.model.states import GroupType
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.plain.check_documents import check_document
from kview.plain.documents import document, json_line
from kview.plain.records import record_document
from kview.plain.schema import ENUMS, FORMAT, json_schema
from kview.run.hooks import trial_document
from tests.plain.checked import outcome
from tests.where.candidates import candidate, hidden
from tests.worlds import crash_script, default_world, views
from tests.worlds.connect import EXITING, FAILED, SQL, with_connectors
from tests.worlds.histories import HAPPENINGS, Plan
from tests.worlds.kinds import CONNECT, SHARE, of_every_kind
from tests.worlds.log_dirs import with_dirs
from tests.worlds.reassignments import Moving
from tests.worlds.transactions import TIMEOUT_MS, holding

SILENT_S = 4
SHARED = (0, 1)
"""The partitions that a share group reads."""
UNITS = {
    "_ms": ("milliseconds", "milliseconds since 1970-01-01T00:00:00Z"),
    "_bytes": ("bytes",),
    "_per_second": ("records per second", "requests per second"),
    "_records": ("records",),
}


@cache
def seen() -> tuple[View, ...]:
    """A crash from its begin to its end, and a world to which everything happens."""
    crash = views(crash_script(broker=4, healthy_s=20, silent_s=12, after_s=3))
    eventful = Plan(tuple((4 + 3 * number, what) for number, what in enumerate(HAPPENINGS)))
    return (*crash, *views(eventful.snapshots(1, 60)))


def parsed(view: View) -> dict[str, Any]:
    text = document(view)
    assert "\n" not in text
    made = json.loads(text)
    assert isinstance(made, dict)
    return made


@cache
def crash_document() -> dict[str, Any]:
    """Broker 4 has been silent for four seconds."""
    return parsed(seen()[20 + SILENT_S - 1])


def structs() -> dict[str, dict[str, Any]]:
    """The schema's objects by name."""
    return {name: named for name, named in json_schema()["$defs"].items() if "properties" in named}


def fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(object, field, its schema) of all that a document can hold."""
    for name, struct in structs().items():
        for field, described in struct["properties"].items():
            yield name, field, described


def closed() -> dict[str, Any]:
    """The schema with nothing allowed that it does not name."""
    schema = dict(json_schema())
    strict = {name: {**named, "additionalProperties": False} for name, named in structs().items()}
    return {**schema, "$defs": {**schema["$defs"], **strict}}


def test_real_documents_are_what_the_schema_says() -> None:
    Draft202012Validator.check_schema(json_schema())
    validator = Draft202012Validator(closed())
    for view in seen()[::3]:  # something happens every three seconds
        validator.validate(parsed(view))


@pytest.mark.parametrize(
    ("field", "wrong"), [("format", None), ("severity", "awful"), ("brokers", {}), ("at_ms", "now")]
)
def test_the_schema_can_say_no(field: str, wrong: object) -> None:
    validator = Draft202012Validator(closed())
    assert not validator.is_valid({**crash_document(), field: wrong})
    assert not validator.is_valid({key: value for key, value in crash_document().items() if key != field})
    assert not validator.is_valid({**crash_document(), "more": 1})


def test_every_field_says_what_it_means_and_every_figure_its_unit() -> None:
    for struct, field, described in fields():
        name = f"{struct}.{field}"
        assert described["description"][0].isupper() or described["description"].startswith(
            ("broker.rack", "min.insync", "log_end_offset")
        ), name
        assert described["description"].endswith("."), name
        for ending, units in UNITS.items():
            if field.endswith(ending):
                assert described.get("unit") in units, name
        if described.get("unit") == UNITS["_ms"][1]:
            assert field.endswith("_ms"), f"{name} is a time and does not say so"


def test_enumerations_are_described_for_readers_of_documents_and_not_for_developers() -> None:
    described = {name: named for name, named in json_schema()["$defs"].items() if "enum" in named}
    assert described.keys() == ENUMS.keys()
    for name, named in described.items():
        said = named["description"]
        assert not re.search(r"[A-Z]{3,}|never change|must not change|\bus\b|\brow\b|\bcolumn\b", said), name
    states = described["BrokerState"]
    assert all(f"{state}: " in states["description"] for state in states["enum"])


def test_what_is_described_is_there_in_a_real_document() -> None:
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.update(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(item)

    for view in seen():
        walk(parsed(view))
    walk(parsed(step(State(), with_connectors(of_every_kind(default_world().tick())))[1]))
    snapshot = default_world().tick()
    since_ms = snapshot.observation.ended_ms - TIMEOUT_MS
    walk(parsed(step(State(), holding(snapshot, "invoice", 0, 5, since_ms))[1]))
    walk(parsed(step(State(), with_dirs(snapshot, 4))[1]))
    walk(parsed(Moving().look()))
    walk(json.loads(check_document(outcome())))
    walk(json.loads(json_line(trial_document("prod"))))
    undecoded = Decoded(SchemaId(7), failure=DecodeFailure(DecodeFailureKind.NO_REGISTRY))
    record = candidate(b"k", b"\0\0\0\0\7", {"trace": b"abc"}, decoded=DecodedRecord(None, undecoded))
    walk(json.loads(record_document("orders", record)))
    walk(json.loads(record_document("orders", hidden(record))))
    of_a_report = {name for name in structs() if name.startswith("Report")}  # see tests/plain/report
    assert {field for name, field, _ in fields() if name not in of_a_report} == found


def with_groups_of(kinds: set[GroupType], seconds: int = 15) -> dict[str, Any]:
    """The default world, which has classic groups, with groups of these kinds that commit nothing. The share
    group shares two partitions of invoice."""

    def change(seen: Snapshot) -> Snapshot:
        made = of_every_kind(seen)
        groups, shared = made.groups, made.share_offsets
        kept = np.isin(groups.type.astype(str), [GroupType.CLASSIC, *kinds])
        invoice = np.full(len(shared), "invoice", object)
        shared = replace(shared, topic=invoice).take(np.full(len(shared), GroupType.SHARE in kinds))
        return replace(made, groups=groups.take(kept), share_offsets=shared)

    world = default_world()
    return parsed(list(views(change(world.tick()) for _ in range(seconds)))[-1])


def test_a_rate_out_that_leaves_out_share_groups_is_a_bound() -> None:
    """The workers of Kafka Connect read with the groups of their sinks, which are counted."""
    plain, workers = with_groups_of(set()), with_groups_of({GroupType.CONNECT})
    for read in (plain, workers):
        assert read["out_records_per_second"] > 0 and not read["out_is_bound"]
        assert not any(broker["out_is_bound"] for broker in read["brokers"])
    shared = with_groups_of({GroupType.CONNECT, GroupType.SHARE})
    assert shared["out_records_per_second"] == plain["out_records_per_second"] and shared["out_is_bound"]
    of_invoice = [each for each in shared["partitions"] if each["topic"] == "invoice"]
    leaders = {each["leader"] for each in of_invoice if each["partition"] in SHARED}
    assert {broker["id"] for broker in shared["brokers"] if broker["out_is_bound"]} == leaders
    (group,) = (each for each in shared["groups"] if each["group"] == SHARE)
    assert (group["read_records_per_second"], group["read_is_bound"]) == (None, False)


def test_sums_of_rates_without_a_silent_brokers_partitions_are_bounds() -> None:
    read = crash_document()
    assert read["in_is_bound"] and read["out_is_bound"]
    (group,) = (each for each in read["groups"] if each["group"] == "billing")
    (topic,) = (each for each in read["topics"] if each["topic"] == "invoice")
    assert group["write_is_bound"] and topic["in_is_bound"]
    assert not any(broker["in_is_bound"] for broker in read["brokers"]), "all of it is known, or nothing"


def test_connectors_are_listed_with_their_time_or_null_if_nobody_told() -> None:
    seen = default_world().tick()

    def of(snapshot: Snapshot) -> Any:
        return parsed(step(State(), snapshot)[1])

    read = of(with_connectors(seen, FAILED))
    assert read["connectors"][1] == {
        "connector": "billing",
        "task": 0,
        "group": CONNECT,
        "kind": "sink",
        "state": "FAILED",
        "worker": "worker-1:8083",
        "trace": EXITING,
        "root_cause": SQL,
    }
    assert read["connectors"][0]["task"] == -1 and read["connectors"][0]["trace"] is None
    assert read["connectors_received_ms"] == read["at_ms"]
    (finding,) = (one for one in read["findings"] if one["kind"] == "connect_task_failed")
    assert (finding["connector"], finding["task"], finding["count"]) == ("billing", 0, 2)
    assert finding["trace"] == SQL
    never = of(with_connectors(seen, age_ms=None, cause=Cause(FailureKind.HTTP_STATUS, 401)))
    assert never["connectors"] is None and never["connectors_received_ms"] is None
    (failure,) = never["failures"]
    assert (failure["part"], failure["broker_id"], failure["cause"]["kind"]) == (
        "connectors",
        None,
        "http_status",
    )
    assert (failure["cause"]["code"], failure["cause"]["text"]) == (401, "answered 401 Unauthorized")
    assert of(with_connectors(seen, []))["connectors"] == []
    assert of(seen)["connectors"] is None


def test_no_sentinel_gets_out() -> None:
    for view in seen():
        text = document(view)
        assert str(UNKNOWN) not in text and str(UNKNOWN_ID) not in text
        assert "NaN" not in text and "Infinity" not in text


def test_findings_and_events_have_a_kind_next_to_their_text() -> None:
    view = seen()[20]
    made, now_ms = parsed(view), view.snapshot.observation.ended_ms
    assert made["format"] == FORMAT
    assert [finding["kind"] for finding in made["findings"]] == [
        "brokers_silent",
        "watermark_frozen",
        "fencing_due",
        "groups_troubled",
        "groups_unread",
    ]
    assert [finding["text"] for finding in made["findings"]] == [
        findings.sentence(finding, now_ms) for finding in view.headline.findings
    ]
    silent, frozen, due, group, _ = made["findings"]
    assert (group["group"], group["verdict"], group["groups"]) == ("reporting", "blocked", 3)
    healthy = parsed(seen()[19])["findings"]
    assert [finding["kind"] for finding in healthy] == ["cluster_well", "groups_troubled"]
    assert (healthy[1]["group"], healthy[1]["verdict"]) == ("audit-export", "stopped")
    assert healthy[1]["behind_ms"] > 130_000 and parsed(seen()[19])["severity"] == "warn"
    assert (silent["brokers"], silent["partitions"], silent["internal_partitions"]) == ([4], 4, 8)
    assert silent["since_ms"] == now_ms - 100 and silent["due_ms"] is None
    assert (frozen["count"], due["count"]) == (4, None)
    assert [event["kind"] for event in made["events"]] == ["broker_silent", "watermark_frozen"]
    assert [event["text"] for event in made["events"]] == [
        events.sentence(event) for event in view.new_events
    ]


def test_a_silent_broker_and_its_partitions() -> None:
    made = crash_document()
    broker = next(row for row in made["brokers"] if row["id"] == 4)
    assert broker["state"] == "silent"
    assert broker["in_records_per_second"] is None, "what a silent leader takes in is not known, not 0"
    assert broker["fencing_due_ms"] > made["at_ms"]
    led = [row for row in made["partitions"] if row["leader"] == 4 and row["topic"] == "invoice"]
    assert led and {row["status"] for row in led} == {"silent_leader"}
    for row in led:
        assert 4 in row["isr"] and row["uncommitted_records"] is None
        replica = next(replica for replica in row["replicas"] if replica["broker_id"] == 4)
        assert replica["silent"] and replica["in_isr"]


def test_replicas_and_isrs_are_their_own_partitions() -> None:
    view = seen()[-1]
    table = view.snapshot.partitions
    for row, made in enumerate(parsed(view)["partitions"]):
        assert (made["topic"], made["partition"]) == (table.topic[row], table.partition[row])
        assert [r["broker_id"] for r in made["replicas"]] == [b for b in table.replicas[row] if b >= 0]
        assert made["isr"] == [b for b in table.isr[row] if b >= 0]
        assert made["offline"] == [b for b in table.offline[row] if b >= 0]


def test_a_reassignment_says_what_is_left_and_which_replicas_it_moves() -> None:
    moved, other = parsed(Moving().copy(20, 1_000))["partitions"]
    assert moved["reassignment"] == {
        "records_left": 160_000,
        "records_left_is_bound": False,
        "bytes_left": 19_800_000,
        "time_left_ms": 80_000,
    }
    told = [(one["broker_id"], one["being_added"], one["being_removed"]) for one in moved["replicas"]]
    assert told == [(1, True, False), (2, True, False), (0, False, True)]
    assert other["reassignment"] is None
    assert not any(one["being_added"] or one["being_removed"] for one in other["replicas"])


def test_a_group_has_its_partitions_and_its_verdict() -> None:
    made = crash_document()
    for group in made["groups"]:
        known = [row["lag_records"] for row in group["partitions"] if row["lag_records"] is not None]
        assert group["lag_records"] == (sum(known) if known else None)
        kinds = {row["verdict"]["kind"] for row in group["partitions"]}
        assert group["verdict"]["kind"] in kinds
    billing = next(group for group in made["groups"] if group["group"] == "billing")
    assert billing["verdict"] == {
        "kind": "blocked",
        "text": "blocked: 6 partitions",
        "reason": "partitions",
        "reason_ms": None,
        "reason_count": 6,
    }


def test_rack_safe_has_three_answers() -> None:
    snapshot = default_world().tick()
    table = snapshot.partitions
    replicas = table.replicas.copy()
    replicas[np.flatnonzero(table.topic == "invoice")[0]] = [0, 1, 2]
    (view,) = views([replace(snapshot, partitions=replace(table, replicas=replicas))])
    made = parsed(view)
    answers = {topic["topic"]: topic["rack_safe"] for topic in made["topics"]}
    assert (answers["payment"], answers["invoice"], answers["audit-log"]) == (True, False, None)
    (invoice,) = [topic for topic in made["topics"] if topic["topic"] == "invoice"]
    assert invoice["not_rack_safe_partitions"] == 1
    of_invoice = [row["rack_safe"] for row in made["partitions"] if row["topic"] == "invoice"]
    assert of_invoice == [False] + [True] * 9


def test_how_many_brokers_answer_and_how_fast() -> None:
    made = crash_document()
    assert (made["broker_count"], made["answering_broker_count"]) == (6, 5)
    assert {broker["latency_us"] for broker in made["brokers"]} == {1_800}
    assert {broker["slow_since_ms"] for broker in made["brokers"]} == {None}
