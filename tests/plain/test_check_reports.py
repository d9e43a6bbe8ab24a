"""The outcome of a check as lines, as a JSON document, and as JUnit XML."""

import json
from collections import Counter
from datetime import UTC
from typing import Any
from xml.etree import ElementTree as Xml

from jsonschema import Draft202012Validator

from kview.derive.checks.outcome import Outcome, Rules
from kview.derive.view import Reason, Verdict
from kview.model.checks import CheckFinding, CheckKind, Judgement, Level, NotJudged, NotJudgedWhy
from kview.model.units import UNKNOWN
from kview.plain.check_documents import check_document
from kview.plain.check_lines import MOST_GROUPS_LISTED, MOST_OF_A_KIND, lines
from kview.plain.junit import junit
from kview.plain.schema import json_schema
from tests.plain.checked import HOSTILE, outcome


def made(*findings: CheckFinding, not_judged: tuple[NotJudged, ...] = (), allow: bool = False) -> Outcome:
    """The outcome of a check of a small cluster with these findings."""
    rules = Rules(Level.WARN, allow)
    return Outcome(1_760_000_000_000, 6_000, "id", 3, 3, 1, 4, 0, Judgement(findings, not_judged), rules)


def test_a_line_says_what_where_since_when_and_what_to_do() -> None:
    text = lines(outcome(), "here:9092", UTC)
    rows = text.splitlines()
    assert rows[0] == (
        "kview check 08:53:31  here:9092  5 of 6 brokers answer  4 topics  70 partitions  4 groups"
        "  observed for 11 s"
    )
    assert rows[1] == (
        "✕ risk  broker_silent:4  broker 4 does not answer and is still listed as leader of 12 partitions,"
        " for 3.1 s. Check that it runs and that this machine can reach it"
    )
    assert rows[3] == (
        "▲ warn  group_stopped:audit-export  stopped (no members, ≥ 2 m 10 s behind). Start its consumers, or"
        " delete the group if nobody needs it"
    )
    assert (
        "· weakness  replication_factor_1:audit-log  all 4 partitions have a single replica. Add replicas"
        " with kafka-reassign-partitions.sh"
    ) in rows
    assert rows[-1] == "not healthy: 11 findings (10 risk, 1 warn), 10 weaknesses, 2 not judged"


def test_what_a_broker_explains_is_folded_below_it() -> None:
    """12 leaders; of what it follows, 23 partitions wait for it; what is left has no line of its own."""
    text = lines(outcome(), "here:9092", UTC)
    assert text.splitlines()[2] == (
        "  explains 13 more: 12 partitions with a silent leader (audit-log-3, invoice-3 + 10 more), 23"
        " partitions with a frozen high watermark (invoice-1, invoice-2 + 21 more), 2 groups blocked"
        " (billing, reporting), 2 more brokers that must stay up, 2 not judged (--format json lists them)"
    )
    for label in ("silent_leader:", "frozen:", "group_blocked:", "broker_loss:2", "? not judged"):
        assert label not in text
    assert "broker_loss:0" in text and "Restart broker 4" not in text, "advice is given once"


def test_what_has_no_cause_is_listed_when_it_was_not_judged() -> None:
    open_ = NotJudged((CheckKind.BROKER_SLOW,), NotJudgedWhy.NOT_ANSWERED, ("4",), (4,))
    rows = lines(made(not_judged=(open_,)), "here:9092", UTC).splitlines()
    assert rows[1] == "? not judged  broker_slow:4  no answer from broker 4"


def test_nothing_found_is_healthy() -> None:
    rows = lines(made(), "here:9092", UTC).splitlines()
    assert len(rows) == 2 and rows[1] == "healthy: no findings"


def test_one_kind_does_not_fill_the_screen() -> None:
    many = [
        CheckFinding(CheckKind.MIN_ISR_1, Level.WEAKNESS, name=f"t{number}", replicas=3)
        for number in range(MOST_OF_A_KIND + 30)
    ]
    rows = lines(made(*many), "here:9092", UTC).splitlines()
    assert len(rows) == MOST_OF_A_KIND + 3
    assert rows[-2] == "  + 30 more min_isr_1: --format json lists all of them"


def stopped(number: int, behind_ms: int = 60_000, lag: int = 100) -> CheckFinding:
    return CheckFinding(
        CheckKind.GROUP_STOPPED,
        Level.WARN,
        name=f"audit-{number:03}",
        verdict=Verdict.STOPPED,
        reason=Reason.NO_MEMBERS,
        lag=lag,
        behind_ms=behind_ms,
    )


def test_groups_that_stopped_in_the_same_way_are_one_line_about_the_worst_of_them() -> None:
    worst = stopped(120, behind_ms=7_200_000)
    other = CheckFinding(CheckKind.GROUP_LOST_RECORDS, Level.RISK, name="billing", amount=3)
    many = [*(stopped(number) for number in range(120)), worst, other]
    rows = lines(made(*many), "here:9092", UTC).splitlines()
    assert len(rows) == 4, "the head, a line for each kind, and the result"
    said = [row for row in rows if "audit" in row]
    label = "group_stopped:audit-120, the worst of 121 groups like it: 12,100 records behind in all ("
    assert len(said) == 1 and label in said[0]
    assert "2 h behind" in said[0] and any("group_lost_records:billing  " in row for row in rows)


def test_what_groups_that_are_alike_are_behind_in_all_is_a_bound_if_one_lag_is_not_known() -> None:
    known, unknown = [stopped(number) for number in range(50)], stopped(50, lag=UNKNOWN)
    _, said, _ = lines(made(*known, unknown), "here:9092", UTC).splitlines()
    assert "51 groups like it: ≥5,000 records behind in all (" in said
    nothing = [stopped(number, lag=UNKNOWN) for number in range(50)]
    _, said, _ = lines(made(*nothing), "here:9092", UTC).splitlines()
    assert "50 groups like it (" in said
    _, said, _ = lines(made(*(stopped(number, lag=0) for number in range(50))), "here:9092", UTC).splitlines()
    assert "50 groups like it (" in said, "nothing is behind"


def test_the_worst_of_groups_that_lost_records_is_the_one_that_lost_the_most() -> None:
    many = [
        CheckFinding(CheckKind.GROUP_LOST_RECORDS, Level.RISK, name=f"etl-{at:02}", amount=at % 40 + 1)
        for at in range(MOST_GROUPS_LISTED + 1)
    ]
    _, said, _ = lines(made(*many), "here:9092", UTC).splitlines()
    assert "etl-39, the worst of 41 groups like it: 821 records lost in all (--format json" in said
    assert "40 records deleted" in said


def test_groups_that_a_person_can_read_one_by_one_have_a_line_each() -> None:
    few = [stopped(number) for number in range(MOST_GROUPS_LISTED)]
    assert len(lines(made(*few), "here:9092", UTC).splitlines()) == MOST_GROUPS_LISTED + 2


def document(of: Outcome) -> dict[str, Any]:
    text = check_document(of)
    assert "\n" not in text and text.isprintable()
    read: dict[str, Any] = json.loads(text)
    return read


def test_a_document_is_what_the_schema_says() -> None:
    validator = Draft202012Validator(json_schema())
    for of in (outcome(), outcome(HOSTILE), made()):
        validator.validate(document(of))
    assert not validator.is_valid({**document(made()), "healthy": "yes"})


def test_a_document_has_the_numbers() -> None:
    read = document(outcome())
    assert (read["healthy"], read["fail_on"], read["watched_ms"]) == (False, "warn", 11_000)
    (silent,) = (row for row in read["findings"] if row["kind"] == "broker_silent")
    assert (silent["name"], silent["brokers"], silent["partition_count"]) == ("4", [4], 12)
    assert silent["since_ms"] == read["at_ms"] - 3_100 and silent["fails"]
    (rack,) = (row for row in read["findings"] if row["kind"] == "rack_loss" and row["name"] == "R1")
    assert rack["leaderless_partitions"] > 0 and rack["since_ms"] is None
    types = {row["name"]: row["group_type"] for row in read["findings"] if row["kind"].startswith("group_")}
    assert set(types.values()) == {"classic"} and rack["group_type"] is None
    assert [row["why"] for row in read["not_judged"]] == ["not_answered", "not_answered"]
    cause = [{"kind": "broker_silent", "name": "4"}]
    assert [row["explained_by"] for row in read["not_judged"]] == [cause, cause]
    assert len(read["findings"]) == 21, "nothing is left out"
    by_cause = Counter(str(row["explained_by"]) for row in read["findings"])
    assert by_cause == {"[]": 10, str(cause): 11}


def suite(of: Outcome) -> Xml.Element:
    root = Xml.fromstring(junit({"here:9092": of}))
    (found,) = root
    return found


def test_junit_has_a_failure_for_each_finding_and_a_test_for_each_kind() -> None:
    found = suite(outcome())
    failed = [case.get("name") for case in found if case.find("failure") is not None]
    assert "offline" not in failed and "silent_leader:invoice" in failed
    assert (found.get("failures"), found.get("errors"), found.get("tests")) == ("11", "2", str(len(found)))
    passed = {case.get("name") for case in found if not len(case)}
    assert {"offline", "no_controller", "leader_skew"} <= passed
    assert not {"silent_leader", "broker_slow", "group_stuck"} & passed
    (failure,) = (case.find("failure") for case in found if case.get("name") == "silent_leader:invoice")
    assert failure is not None and failure.get("type") == "risk"
    assert failure.get("message") == (
        "2 of 10 partitions (3, 9) are led by broker 4 (silent), for 3.1 s. Explained by broker_silent:4"
    )


def test_junit_of_a_healthy_cluster_passes_every_kind() -> None:
    found = suite(made())
    assert {case.get("name") for case in found} == {kind.value for kind in CheckKind}
    assert not any(len(case) for case in found)


def test_junit_survives_any_name() -> None:
    """A `?` takes the place of what XML forbids."""
    names = [case.get("name") for case in suite(outcome(HOSTILE))]
    assert f"group_stopped:{'a' * 40}??[31m???<&\"']]>" in names


def test_junit_of_what_does_not_make_it_fail() -> None:
    """A weakness, one that was not judged, and what the user allows not to be judged."""
    weak = CheckFinding(CheckKind.NOT_PREFERRED, Level.WEAKNESS, name="orders", partition_count=1)
    disks = NotJudged((CheckKind.DISK_SKEW,), NotJudgedWhy.UNSUPPORTED)
    slow = NotJudged((CheckKind.BROKER_SLOW,), NotJudgedWhy.NO_HISTORY)
    for allow, errors in ((True, "0"), (False, "1")):
        found = suite(made(weak, not_judged=(disks, slow), allow=allow))
        assert (found.get("failures"), found.get("errors")) == ("0", errors)
        skipped = {case.get("name") for case in found if case.find("skipped") is not None}
        assert skipped == {"disk_skew"} | ({"broker_slow"} if allow else set())
    (case,) = (case for case in found if case.get("name") == "not_preferred:orders")
    text = str(case.findtext("system-out"))
    assert text.startswith("weakness: ") and "preferred leader" in text


def test_weaknesses_have_a_level_and_do_not_fail_in_a_document() -> None:
    weak = CheckFinding(CheckKind.MIN_ISR_1, Level.WEAKNESS, name="orders", replicas=3)
    item = NotJudged((CheckKind.DISK_SKEW,), NotJudgedWhy.UNSUPPORTED)
    read = document(made(weak, not_judged=(item,)))
    assert read["healthy"]
    assert [(row["level"], row["fails"]) for row in read["findings"]] == [("weakness", False)]
    assert [row["fails"] for row in read["not_judged"]] == [False]
