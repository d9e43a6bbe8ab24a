"""The schema says what every kind of finding is, and what its count means."""

import re

from msgspec.structs import replace

from kview.derive.view import Reason
from kview.language.findings import sentence
from kview.language.verdicts import reason
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind, OpenTransaction
from kview.plain.schema import json_schema

NOW_MS = 1_760_000_000_000


def described(struct: str, field: str) -> dict[str, str]:
    """The meanings of values that a field's description gives, as `value: meaning.`"""
    text = json_schema()["$defs"][struct]["properties"][field]["description"]
    return dict(re.findall(r"(?<=[.;] )(\w+): ([^.]+(?:\.\w[^.]*)*)\.", text))


def finding(kind: FindingKind) -> Finding:
    return Finding(
        kind,
        Severity.RISK,
        brokers=(4,),
        paths=("/data",),
        controllers=(101,),
        group="billing",
        groups=2,
        verdict="stuck",
        partitions=3,
        since_ms=NOW_MS - 5_000,
        due_ms=NOW_MS + 4_000,
        transaction=OpenTransaction("payments", 3, 32, 4_711),
    )


def test_every_kind_of_finding_is_described() -> None:
    assert described("Finding", "kind").keys() == {kind.value for kind in FindingKind}


def test_the_count_is_described_for_every_kind_whose_sentence_it_changes() -> None:
    told = {
        kind.value
        for kind in FindingKind
        if sentence(replace(finding(kind), count=0), NOW_MS)
        != sentence(replace(finding(kind), count=7), NOW_MS)
    }
    assert {"quorum_lost", "records_lost"} <= told
    assert described("Finding", "count").keys() == told


def test_the_count_is_described_for_every_reason_whose_words_it_changes() -> None:
    told = {kind.value for kind in Reason if reason(kind, 5_000, 3) != reason(kind, 5_000, 7)}
    assert {"fell_back", "beyond_end"} <= told
    assert described("GroupVerdict", "reason_count").keys() == told
