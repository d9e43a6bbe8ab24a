"""kview watches a real cluster through a schedule of faults, and every second of its screen is compared with
what is known to be true from elsewhere."""

import pytest

from tests.conftest import ClusterFactory
from tests.truth.judge import Kind, differences
from tests.truth.play import play
from tests.truth.report import share, table
from tests.truth.schedule import SHORT, within
from tests.truth.truth import Truth

MOST = 0.15
"""The greatest share of seconds in which a figure may differ. The goal is 0, and 0 is what two cores measure
that do other work, too; where they are starved, the clients and their own books fall behind."""

NEVER = frozenset({Kind.GROUP_KIND, Kind.MEMBERS, Kind.TRANSACTION, Kind.THROTTLE, Kind.DISK, Kind.ADVICE})
"""What must not be wrong for a second: what people act upon."""


@pytest.mark.timeout(5000)
def test_what_stands_on_the_screen_is_true(
    real_kafka_factory: ClusterFactory,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    minutes = request.config.getoption("--truth-minutes")
    for schedule in within(minutes) if minutes else (SHORT,):
        log, frames = play(schedule, real_kafka_factory)
        found = differences(frames, Truth(log))
        told = table(schedule.name, frames, found, log.deeds)
        with capsys.disabled():
            print("\n" + told)
        assert len(frames) >= 0.9 * schedule.seconds
        assert not NEVER & {one.kind for one in found}, told
        assert share(frames, found) <= MOST, told
