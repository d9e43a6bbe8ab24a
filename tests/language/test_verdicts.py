"""Verdicts, their reasons and statuses in words: every one of them."""

from collections.abc import Mapping
from enum import StrEnum

import pytest

from kview.derive.view import PartitionStatus, Reason, Verdict
from kview.language import verdicts
from kview.model.units import UNKNOWN
from tests.language.said import well_said
from tests.worlds import crash_script, views


@pytest.mark.parametrize(
    ("words", "members"), [(verdicts.STATUSES, PartitionStatus), (verdicts.VERDICTS, Verdict)]
)
def test_every_status_and_verdict_has_a_word_of_its_own(
    words: Mapping[str, str], members: type[StrEnum]
) -> None:
    assert set(words) == set(members)
    said = [word for kind, word in words.items() if kind != Verdict.UNDECIDED]
    assert len(set(said)) == len(said)
    for word in words.values():
        well_said(word)
        assert "_" not in word


@pytest.mark.parametrize("kind", [reason for reason in Reason if reason is not Reason.NONE])
def test_every_reason_is_said_with_its_numbers(kind: Reason) -> None:
    timed = kind in (Reason.NO_MEMBERS, Reason.NO_OWNER, Reason.STILL)
    counted = kind in (Reason.PARTITIONS, Reason.FELL_BACK, Reason.BEYOND_END)
    said = verdicts.reason(kind, 131_000 if timed else UNKNOWN, 1_234 if counted else UNKNOWN)
    well_said(said, ["≥ 2 m 11 s"] * timed + ["1,234"] * counted)


def test_nothing_is_said_where_there_is_nothing_to_say() -> None:
    assert verdicts.reason(Reason.NONE) == verdicts.reason(Reason.STILL) == verdicts.lost(0) == ""
    assert verdicts.reason(Reason.NO_MEMBERS) == "no members"


@pytest.mark.parametrize("status", PartitionStatus)
def test_statuses_are_counted(status: PartitionStatus) -> None:
    for number in (1, 1_200):
        well_said(verdicts.counted(status, number), [f"{number:,} "])


def test_counts_agree_with_their_nouns() -> None:
    assert verdicts.counted(PartitionStatus.SILENT_LEADER, 2) == "2 leaders silent"
    assert verdicts.counted(PartitionStatus.SILENT_LEADER, 1) == "1 leader silent"
    assert verdicts.counted(PartitionStatus.FROZEN, 2) == "2 frozen"


def test_what_groups_and_their_partitions_do_in_a_crash() -> None:
    *_, view = views(crash_script(4, healthy_s=25, silent_s=6, after_s=0))
    groups = dict(zip(view.snapshot.groups.group.tolist(), range(len(view.snapshot.groups)), strict=True))
    assert verdicts.of_group(view.groups, groups["billing"]) == "6 partitions"
    assert verdicts.of_group(view.groups, groups["audit-export"]).startswith("no members, ")
    said = {verdicts.of_offset(view.offsets, row) for row in range(len(view.snapshot.offsets))}
    assert {"", "watermark frozen", "leader silent"} <= said
    assert any(reason.startswith("no members, no progress for ≥ ") for reason in said)
