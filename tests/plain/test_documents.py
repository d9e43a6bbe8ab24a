"""The JSON document: the fields that README lists, units in names, unknown as null."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.plain.documents import document
from tests.worlds import crash_script, views

README = Path(__file__).resolve().parents[2] / "README.md"
SILENT_S = 4


@cache
def crash_document() -> dict[str, Any]:
    """Broker 4 has been silent for four seconds."""
    seen = list(views(crash_script(broker=4, healthy_s=20, silent_s=SILENT_S, after_s=0)))
    text = document(seen[-1])
    assert "\n" not in text
    parsed = json.loads(text)
    assert isinstance(parsed, dict)
    return parsed


def fields(value: Any, name: str = "") -> set[tuple[str, str]]:
    """Every field with the list that it is in: `("brokers", "id")`."""
    if isinstance(value, list):
        return {field for item in value for field in fields(item, name)}
    if not isinstance(value, dict):
        return set()
    inner = {field for key, item in value.items() for field in fields(item, key)}
    return {(name, key) for key in value} | inner


def test_readme_lists_every_field() -> None:
    text = README.read_text().partition("## Without a terminal")[2]
    listed = set(re.findall(r"`([a-z_]+)(?:\[\])?`", text))
    assert {key for _, key in fields(crash_document())} <= listed


def test_no_sentinel_gets_out() -> None:
    text = json.dumps(crash_document())
    assert str(UNKNOWN) not in text and str(UNKNOWN_ID) not in text and "NaN" not in text


def test_a_silent_broker_and_its_partitions() -> None:
    seen = crash_document()
    broker = next(row for row in seen["brokers"] if row["id"] == 4)
    assert broker["state"] == "silent"
    assert broker["in_records_per_second"] is None, "what a silent leader takes in is not known, not 0"
    assert broker["fencing_due_ms"] > seen["at_ms"]
    led = [row for row in seen["partitions"] if row["leader"] == 4 and row["topic"] == "invoice"]
    assert led and {row["status"] for row in led} == {"silent_leader"}
    for row in led:
        assert 4 in row["isr"] and row["uncommitted_records"] is None
        replica = next(replica for replica in row["replicas"] if replica["broker_id"] == 4)
        assert replica["silent"] and replica["in_isr"]


def test_a_group_has_its_partitions() -> None:
    for group in crash_document()["groups"]:
        known = [row["lag_records"] for row in group["partitions"] if row["lag_records"] is not None]
        assert group["lag_records"] == (sum(known) if known else None)
