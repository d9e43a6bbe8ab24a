"""Who reads each topic, against a plain loop over the offsets."""

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State
from kview.derive.groups.readers import Readers, topic_readers
from kview.derive.view import Verdict, View
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from tests.worlds import crash_script, default_world, views
from tests.worlds.kinds import SHARE, of_every_kind


@pytest.fixture(scope="module")
def script() -> list[View]:
    """The views of a crash of broker 4 in second 10."""
    return list(views(crash_script(healthy_s=10, silent_s=14, after_s=2)))


def plainly(view: View) -> dict[str, dict[str, list[int]]]:
    """The lags of each group that counts on each topic, read row by row."""
    found: dict[str, dict[str, list[int]]] = {str(topic): {} for topic in view.topics.topic}
    figures = dict(zip(view.snapshot.groups.group, range(len(view.snapshot.groups)), strict=True))
    for row, group in enumerate(view.snapshot.offsets.group):
        at = figures[group]
        if view.groups.ignored[at] or view.groups.verdict[at] == Verdict.ABANDONED:
            continue
        lags = found[str(view.snapshot.offsets.topic[row])].setdefault(str(group), [])
        lags.append(int(view.offsets.lag[row]))
    return found


@pytest.mark.parametrize("second", [2, 9, 13, 21, 25])
def test_topics_have_the_groups_and_the_worst_lag_of_a_plain_loop(script: list[View], second: int) -> None:
    view = script[second]
    readers = topic_readers(view)
    for at, topic in enumerate(view.topics.topic):
        by_group = plainly(view)[str(topic)]
        assert readers.groups[at] == len(by_group)
        sums = {g: sum(lag for lag in lags if lag != UNKNOWN) for g, lags in by_group.items()}
        if not sums:
            assert readers.worst[at] == -1 and readers.lag[at] == UNKNOWN
            continue
        assert readers.lag[at] == max(sums.values())
        assert sums[str(view.snapshot.groups.group[readers.worst[at]])] == readers.lag[at]


def test_a_lag_is_a_bound_while_a_leader_is_silent_and_exact_before(script: list[View]) -> None:
    at = script[9].topics.topic.tolist().index("invoice")
    assert not topic_readers(script[9]).lag_is_bound[at]
    assert topic_readers(script[13]).lag_is_bound[at]


def test_an_ignored_group_counts_for_no_topic() -> None:
    heard, ignored = (
        next(views([default_world().tick()], State(ignore=ignore))) for ignore in ((), ("reporting",))
    )
    payment = heard.topics.topic.tolist().index("payment")
    assert [int(topic_readers(view).groups[payment]) for view in (heard, ignored)] == [1, 0]


def test_the_readers_of_a_topic_have_their_figures_on_that_topic_only(script: list[View]) -> None:
    view = script[9]
    groups = view.snapshot.groups.group
    of_payment = Readers(view, "payment")
    assert [str(groups[reader.group]) for reader in of_payment] == ["reporting"]
    assert of_payment[0].partitions == 6, "not the ten of invoice, which the group reads too"
    rows = np.flatnonzero(
        (view.snapshot.offsets.group == "reporting") & (view.snapshot.offsets.topic == "payment")
    )
    assert of_payment[0].lag == int(view.offsets.lag[rows].sum())
    assert not Readers(view, "no-such-topic")


def test_the_worst_reader_comes_first(script: list[View]) -> None:
    groups = script[9].snapshot.groups.group
    found = [(str(groups[r.group]), r.verdict) for r in Readers(script[9], "audit-log")]
    assert found[0] == ("audit-export", Verdict.STOPPED)
    assert [name for name, _ in found] == ["audit-export", "fraud-check"]


def test_a_topic_without_partitions_in_the_snapshot_breaks_nothing(script: list[View]) -> None:
    view = script[9]
    gone = replace(view, offsets=replace(view.offsets, partition_row=np.full(len(view.snapshot.offsets), -1)))
    readers = topic_readers(gone)
    assert not readers.groups.any() and (readers.worst == -1).all() and np.isnan(readers.out_rate).all()


def sharing_invoice(seen: Snapshot) -> Snapshot:
    """A snapshot with groups of every kind, one of which shares two partitions of invoice."""
    made = of_every_kind(seen)
    topics = np.full(len(made.share_offsets), "invoice", object)
    return replace(made, share_offsets=replace(made.share_offsets, topic=topics))


def test_a_share_group_reads_a_topic_and_its_records_are_in_no_rate() -> None:
    worlds = default_world(), default_world()
    alone = list(views(worlds[0].tick() for _ in range(3)))[-1]
    shared = list(views(sharing_invoice(worlds[1].tick()) for _ in range(3)))[-1]
    at = shared.topics.topic.tolist().index("invoice")
    assert topic_readers(shared).groups[at] == topic_readers(alone).groups[at] + 1
    rates = np.full(len(alone.offsets.read_rate), 5.0)
    alone, shared = (replace(one, offsets=replace(one.offsets, read_rate=rates)) for one in (alone, shared))
    before, after = topic_readers(alone), topic_readers(shared)
    assert before.out_rate[at] == after.out_rate[at] > 0
    assert not before.out_is_bound.any() and np.flatnonzero(after.out_is_bound).tolist() == [at]
    (reader,) = (one for one in Readers(shared, "invoice") if one.worst < 0)
    assert str(shared.snapshot.groups.group[reader.group]) == SHARE
    assert (reader.partitions, reader.lag, reader.lag_is_bound) == (2, 40, False)


def test_what_a_broker_passes_on_to_share_groups_is_in_no_rate() -> None:
    world = default_world()
    view = list(views(sharing_invoice(world.tick()) for _ in range(15)))[-1]
    first = int(view.topics.first_row[view.topics.topic.tolist().index("invoice")])
    leaders = view.snapshot.partitions.leader[first : first + 2]
    assert view.brokers.out_is_bound[np.isin(view.snapshot.brokers.id, leaders)].all()


@pytest.mark.parametrize("second", [2, 13])
def test_no_reader_has_more_lag_than_the_most(script: list[View], second: int) -> None:
    for topic in script[second].topics.topic:
        readers = Readers(script[second], str(topic))
        assert readers.most_lag() == max((readers[at].lag for at in range(len(readers))), default=UNKNOWN)
