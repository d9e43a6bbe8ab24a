"""The lag of groups as a share of what their topics keep."""

from collections.abc import Mapping

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.groups.retained import LagShares, lag_shares
from kview.derive.view import View
from kview.model.snapshot import TopicConfigs
from tests.worlds.small import TOPIC, reader, small_world, watch
from tests.worlds.tables import table

SIZE = 100_000
KEEPS = {"cleanup.policy": "delete", "retention.ms": "600000", "retention.bytes": "1000"}


def seen(start: int, *committed: int, members: int = 1) -> View:
    """A log from `start` to 100,000 that nobody writes to, and a group with a commit on each of its
    partitions."""
    world = small_world(
        reader("billing", *committed, members=members, share=0.0),
        partitions=len(committed),
        rate=0.0,
        size=SIZE,
    )
    for log in world.logs:
        log.start = start
        log.ends, log.watermark = dict.fromkeys(log.ends, float(SIZE)), float(SIZE)
    return watch(world, 3)[-1]


def shares(view: View, settings: Mapping[str, str] | None = None) -> LagShares:
    settings = KEEPS if settings is None else settings
    rows = [
        {"topic": TOPIC, "name": name, "value": value, "source": "DEFAULT_CONFIG"}
        for name, value in sorted(settings.items())
    ]
    return lag_shares(replace(view, snapshot=replace(view.snapshot, topic_configs=table(TopicConfigs, rows))))


def test_the_share_of_the_log_that_is_unread() -> None:
    of_log = shares(seen(20_000, 100_000, 80_000, 20_000, 12_000)).of_log
    assert of_log.tolist() == [0.0, 0.25, 1.0, 1.1]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cleanup.policy": "compact", "retention.ms": "600000", "retention.bytes": "-1"},
        {"cleanup.policy": "compact,delete", "retention.ms": "600000", "retention.bytes": "-1"},
        {"cleanup.policy": "compact", "retention.ms": "600000", "retention.bytes": "1000"},
        {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    ],
)
def test_topics_that_are_compacted_keep_everything_or_are_not_known_have_none(
    settings: Mapping[str, str],
) -> None:
    found = shares(seen(20_000, 80_000), settings)
    assert np.isnan(found.of_log).all() and np.isnan(found.of_time).all()


def test_a_log_that_still_has_its_first_record_and_an_empty_one_have_none() -> None:
    """A group that begins at 0 has the whole log before it, and nothing is about to be removed."""
    assert np.isnan(shares(seen(0, 10, 50_000)).of_log).all()
    assert np.isnan(shares(seen(SIZE, SIZE, 50_000)).of_log).all()


def test_what_is_not_known_has_none() -> None:
    """No commit, a commit beyond the end, a partition that is not there (any more), a silent leader."""
    found = seen(20_000, -1, SIZE + 50, 80_000)
    assert np.isnan(shares(found).of_log).tolist() == [True, True, False]
    gone = replace(found, offsets=replace(found.offsets, partition_row=np.full(3, -1)))
    assert np.isnan(shares(gone).of_log).all()
    bound = replace(found, offsets=replace(found.offsets, lag_is_bound=np.ones(3, np.bool_)))
    assert np.isnan(shares(bound).of_log).all()
    none = replace(
        found, snapshot=replace(found.snapshot, partitions=found.snapshot.partitions.take(np.array([], int)))
    )
    gone = replace(none, offsets=gone.offsets)
    assert np.isnan(shares(gone).of_log).all()


def test_the_share_of_the_time_that_records_are_kept() -> None:
    view = seen(20_000, 80_000, 80_000, 80_000)
    behind_ms = np.array([150_000, 900_000, 60_000])
    figures = replace(view.offsets, behind_ms=behind_ms, behind_is_bound=np.array([False, False, True]))
    found = shares(replace(view, offsets=figures))
    assert found.of_time[:2].tolist() == [0.25, 1.5] and np.isnan(found.of_time[2])
    assert found.of_time_min.tolist() == [0.25, 1.5, 0.1]
    by_time = shares(replace(view, offsets=figures), {**KEEPS, "retention.bytes": "-1"})
    assert by_time.of_time_min.tolist() == [0.25, 1.5, 0.1]
    assert np.isnan(by_time.of_log).all(), "an idle topic's log may begin at the commit"
    limited = shares(replace(view, offsets=figures), {**KEEPS, "retention.ms": "-1"})
    assert np.isnan(limited.of_time).all() and limited.of_log[0] == 0.25
