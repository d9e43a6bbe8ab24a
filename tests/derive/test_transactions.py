"""Groups that wait for a transaction, and what is said of it."""

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.partitions.log import partition_log
from kview.derive.transactions.findings import held_partition
from kview.derive.view import Reason, Verdict, View
from kview.language.findings import abort_command, sentence
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.states import GroupState, GroupType, TransactionState
from kview.model.units import UNKNOWN
from kview.plain.documents import document
from kview.tui.options import Options
from kview.tui.rows.partition_heading import partition_heading
from kview.tui.text import content, line_width
from tests.worlds.small import TOPIC, ends, reader, small_world
from tests.worlds.transactions import APP, holding

TOPIC_REFUSED = 29


def watched(
    seconds: int,
    kind: str,
    members: int,
    opened_s: int = 0,
    state: str = TransactionState.ONGOING,
    error: int = 0,
) -> list[View]:
    """Views of a group that reads all that it can of four partitions, of which one is held from the start.

    The transaction began `opened_s` before.
    """
    end = ends()
    group = reader("billing", *end, members=members, share=1.0)
    group.type, group.commit_every_ms = kind, 2_000
    group.state = GroupState.STABLE if members else GroupState.EMPTY
    world, fold, views = small_world(group), State(), []
    for second in range(seconds):
        snapshot = world.tick()
        first = snapshot.offsets.partition == 0
        committed = np.where(first, end[0], snapshot.offsets.committed)
        snapshot = replace(snapshot, offsets=replace(snapshot.offsets, committed=committed))
        began_ms = snapshot.observation.ended_ms - 1000 * (second + opened_s)
        fold, view = step(fold, holding(snapshot, TOPIC, 0, end[0], began_ms, state, error))
        views.append(view)
    return views


def about(view: View) -> list[Finding]:
    """The findings about transactions."""
    return [finding for finding in view.headline.findings if "transaction" in finding.kind]


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("kind", "members"), [(GroupType.CLASSIC, 1), (GroupType.CONSUMER, 1), (GroupType.SIMPLE, 0)]
)
def test_a_group_that_waits_for_a_transaction_is_neither_stuck_nor_stopped(kind: str, members: int) -> None:
    views = watched(200, kind, members)
    verdicts = [str(view.groups.verdict[0]) for view in views]
    assert set(verdicts) <= {Verdict.OK, Verdict.UNDECIDED, Verdict.HELD}
    assert Verdict.HELD not in verdicts[:60] and set(verdicts[62:]) == {Verdict.HELD}
    last = views[-1]
    assert last.groups.reason[0] == Reason.TRANSACTION and 198_000 <= last.groups.reason_ms[0] <= 200_000
    assert last.groups.severity[0] == Severity.WARN
    (finding,) = about(last)
    assert (finding.kind, finding.severity, finding.group, finding.groups) == (
        FindingKind.OPEN_TRANSACTION,
        Severity.WARN,
        "billing",
        1,
    )
    held = int(last.snapshot.partitions.high_watermark[0]) - ends()[0]
    assert finding.count == held
    assert sentence(finding, last.snapshot.observation.ended_ms) == (
        f"transaction of {APP} open for 3 m 19 s (timeout 15 m): {held:,} records of {TOPIC}-0 are held back,"
        " and billing waits"
    )
    assert document(last)


def test_a_group_whose_members_left_has_stopped_whatever_a_transaction_does() -> None:
    assert watched(90, GroupType.CLASSIC, 0)[-1].groups.verdict[0] == Verdict.STOPPED


@pytest.mark.parametrize(
    ("opened_s", "kinds"),
    [(440, []), (460, [FindingKind.OPEN_TRANSACTION])],
)
def test_a_transaction_is_told_past_half_of_its_timeout(opened_s: int, kinds: list[FindingKind]) -> None:
    (view,) = watched(1, GroupType.CLASSIC, 1, opened_s)
    assert [finding.kind for finding in about(view)] == kinds


def test_a_transaction_that_no_coordinator_has_is_told_after_a_minute_with_the_command_that_ends_it() -> None:
    views = watched(70, GroupType.CLASSIC, 1, state=TransactionState.HANGING)
    kinds = [[finding.kind for finding in about(view)] for view in views]
    assert kinds[:60] == [[]] * 60 and kinds[-1] == [FindingKind.HANGING_TRANSACTION]
    (finding,) = about(views[-1])
    assert finding.severity == Severity.RISK and finding.transaction is not None
    table = views[-1].snapshot.brokers
    row = table.id.tolist().index(int(views[-1].snapshot.partitions.leader[0]))
    assert abort_command(finding.transaction) == (
        f"kafka-transactions.sh --bootstrap-server {table.host[row]}:{table.port[row]} abort --topic {TOPIC}"
        f" --partition 0 --start-offset {ends()[0]}"
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize("cells", [80, 120, 200])
def test_the_partitions_screen_has_the_whole_command(cells: int) -> None:
    view = watched(70, GroupType.CLASSIC, 1, state=TransactionState.HANGING)[-1]
    log, now_ms = partition_log(view, TOPIC, 0), view.snapshot.observation.ended_ms
    assert log is not None and log.last_stable == ends()[0]
    lines = partition_heading(view, log, Options(), now_ms, UNKNOWN, cells)
    assert all(line_width(line) <= cells for line in lines)
    said = " ".join(content(line).strip() for line in lines)
    (finding,) = about(view)
    assert finding.transaction is not None and abort_command(finding.transaction) in said


def test_that_nobody_may_tell_whose_it_is_is_said() -> None:
    (finding,) = about(watched(90, GroupType.CLASSIC, 1, error=TOPIC_REFUSED)[-1])
    assert finding.kind == FindingKind.OPEN_TRANSACTION
    said = sentence(finding, 0)
    assert (
        "an unknown producer (not authorized to see who: TOPIC_AUTHORIZATION_FAILED)" in said
        and APP not in said
    )


def test_the_partitions_screen_has_the_producer_and_its_coordinator() -> None:
    view = watched(90, GroupType.CLASSIC, 1)[-1]
    log = partition_log(view, TOPIC, 0)
    assert log is not None
    lines = partition_heading(view, log, Options(), view.snapshot.observation.ended_ms, UNKNOWN, 120)
    assert "    producer 4711 · epoch 3 · coordinator 1" in [content(line) for line in lines]


def test_nothing_is_said_of_a_last_stable_offset_that_moved_a_moment_ago() -> None:
    view = watched(1, GroupType.CLASSIC, 1, opened_s=2)[-1]
    log = partition_log(view, TOPIC, 0)
    assert log is not None and log.last_stable == UNKNOWN
    assert held_partition(view.snapshot, view.offsets, 0) is None


def test_nothing_is_said_of_partitions_that_nothing_holds() -> None:
    view = watched(1, GroupType.CLASSIC, 1, opened_s=3)[-1]
    held = [held_partition(view.snapshot, view.offsets, row) for row in range(4)]
    assert [finding is not None for finding in held] == [True, False, False, False]
