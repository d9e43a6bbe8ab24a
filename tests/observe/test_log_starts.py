"""Log starts that matter now: a group that loses records is seen losing them, not reading them. How often
last stable offsets are read."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from kview.model.snapshot import Offsets
from kview.model.units import UNKNOWN
from kview.observe.budget import Share
from kview.observe.groups.facts import GroupFacts
from kview.observe.groups.tables import GroupTables
from kview.observe.layout import Layout, layout
from kview.observe.observer import ObserveSettings
from kview.observe.offset_rounds import LogStarts, OffsetRounds
from kview.observe.state import Readings, nothing_read
from kview.wire.offset_fetch import GroupCommits, TopicCommits
from tests.observe.fake_broker import COORDINATOR_VERSIONS, FakeBroker
from tests.observe.observing import Watched, observing, until
from tests.observe.test_offsets import topics

TWO = layout(topics({"a": ("id", {0: (0, (0, 1)), 1: (0, (0, 1))})}), None)


class Story:
    """Two partitions whose log starts are 1,000, and a group that reads both, second by second."""

    def __init__(self) -> None:
        self._starts = LogStarts()
        self._tables = GroupTables()
        self._group = GroupFacts("g", "consumer", "Stable", 1)
        self._readings: Readings = nothing_read(TWO)
        self._readings.log_start[:] = 1_000
        self._second = 0

    def wanted(self, committed: tuple[int, int], watermark: int, layout: Layout = TWO) -> list[bool]:
        """Whether each partition's log start is wanted, one second later."""
        self._second += 1
        ids = np.arange(2, dtype=np.int32)
        offsets = TopicCommits("a", ids, np.array(committed, np.int64), np.zeros(2, np.int16))
        self._group.commits, self._group.committed_ms = GroupCommits("g", 0, (offsets,)), 1_000 * self._second
        self._tables.update_offsets({"g": self._group})
        self._readings.high_watermark[:] = watermark
        self._readings.high_watermark_ms[:] = 1_000 * self._second
        wanted: list[bool] = self._starts.wanted(layout, self._readings, self._tables.offsets).tolist()
        return wanted


def test_a_commit_below_the_log_start_or_within_ten_seconds_of_it_is_near() -> None:
    story = Story()
    assert story.wanted((900, 9_000), 20_000) == [True, False]
    for second in range(20):
        story.wanted((2_000 + 50 * second, 4_000 + 50 * second), 20_000 + 200 * second)
    assert story.wanted((2_500, 5_050), 24_000) == [True, False]  # the log grows by 200 records a second


def test_a_commit_that_jumps_or_falls_back_is_far_from_its_last_one() -> None:
    story = Story()
    for second in range(10):
        wanted = story.wanted((9_000 + 50 * second, 9_000 + 50 * second), 100_000)
    assert wanted == [False, False]
    assert story.wanted((9_500, 40_000), 100_000) == [False, True]
    assert story.wanted((9_550, 30_000), 100_000) == [False, True]
    for second in range(30):
        wanted = story.wanted((9_600 + 50 * second, 30_050 + 50 * second), 100_000)
    assert wanted == [False, False]


def test_nothing_is_wanted_without_groups_or_partitions() -> None:
    readings = nothing_read(TWO)
    assert not LogStarts().wanted(TWO, readings, GroupTables().offsets).any()
    nothing = layout(topics({}), None)
    assert len(LogStarts().wanted(nothing, nothing_read(nothing), offsets_of_one())) == 0


def offsets_of_one() -> Offsets:
    one = np.array([0], np.int32)
    committed = TopicCommits("a", one, np.array([5], np.int64), np.zeros(1, np.int16))
    tables = GroupTables()
    tables.update_offsets(
        {"g": GroupFacts("g", "consumer", "Stable", 1, commits=GroupCommits("g", 0, (committed,)))}
    )
    return tables.offsets


def test_records_deleted_under_a_group_are_seen_in_the_observation_in_which_its_commit_jumps() -> None:
    settings = ObserveSettings(log_start_rounds=10_000)
    with FakeBroker(0, versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups, broker.high_watermark = 0, ("billing",), 90_000
        broker.committed = 10_000
        with observing([broker.address], settings) as observer:
            until(observer, lambda s: s.offsets.committed.tolist() == [10_000], "the group is seen")
            until(observer, lambda s: bool((s.partitions.log_start != UNKNOWN).all()), "log starts are read")
            for _ in range(3):
                observer.observe()
            broker.log_start, broker.committed = 50_000, 50_100
            seen = until(
                observer, lambda s: s.offsets.committed.tolist() == [50_100], "its commit has jumped"
            )
            assert seen.partitions.log_start[seen.partitions.topic == "invoice"].tolist() == [50_000]


def test_a_group_that_is_overtaken_is_seen_in_the_next_observation() -> None:
    """Its commit is read after the log start, so that it proves the loss."""
    settings = ObserveSettings(log_start_rounds=10_000)
    with FakeBroker(0, versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups, broker.high_watermark = 0, ("billing",), 90_000
        broker.committed = broker.log_start = 10_000
        with observing([broker.address], settings) as observer:
            watched = Watched(observer)
            watched.until(lambda v: v.snapshot.offsets.committed.tolist() == [10_000], "the group is seen")
            assert watched.look().groups.lost.tolist() == [0]
            broker.log_start = 50_000
            assert watched.look().groups.lost.tolist() == [40_000]


def test_last_stable_offsets_are_read_every_5_seconds_and_each_time_while_something_holds_them() -> None:
    readings = nothing_read(TWO)
    both = Share(TWO, np.array([0, 1]), np.array([], np.int64))
    state: Any = SimpleNamespace(readings=readings, layout=TWO, groups={}, group_tables=GroupTables())
    links: Any = SimpleNamespace(askable=lambda: {0: object()})
    requests: Any = SimpleNamespace(leaders=lambda *asked: asked[-1])
    budget: Any = None
    rounds = OffsetRounds(state, requests, links, budget, 60, ObserveSettings().last_stable_s)
    asked: dict[int, list[float]] = {0: [], 1: []}
    for at_ms in range(1_000_000, 1_060_000, 500):
        readings.last_stable_since_ms[1] = at_ms if 1_020_000 <= at_ms < 1_040_000 else UNKNOWN
        ((_, ask),) = rounds.leaders(({0: both}, True), rounds.starts_near_commits(1), at_ms)
        stables: Any = ask()
        readings.last_stable_ms[stables] = at_ms
        for row in stables.tolist():
            asked[row].append((at_ms - 1_000_000) / 1000)
    assert asked[0] == [5.0 * n for n in range(12)]
    held = [second for second in asked[1] if 20 <= second < 40]
    assert held == [20 + 0.5 * n for n in range(40)]
    assert len(asked[1]) - len(held) == 8, "every 5 s before and after"
