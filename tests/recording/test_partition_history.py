"""A partition's leaders and ISRs from a recording are those of its snapshots."""

from pathlib import Path

import pytest

from kview.model.history import Led
from kview.recording.partition_history import READS_FOR_S, partition_history
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter
from tests.tui.harness import script


def by_hand(topic: str, partition: int) -> list[Led]:
    """What one reads in the snapshots, the newest first."""
    found: list[Led] = []
    for view in script():
        table = view.snapshot.partitions
        for row in range(len(table)):
            if (table.topic[row], int(table.partition[row])) == (topic, partition):
                isr = tuple(int(one) for one in table.isr[row] if one >= 0)
                led = Led(
                    view.snapshot.observation.ended_ms,
                    int(table.leader[row]),
                    int(table.leader_epoch[row]),
                    isr,
                )
                if not found or (led.leader, led.epoch, set(led.isr)) != (
                    found[-1].leader,
                    found[-1].epoch,
                    set(found[-1].isr),
                ):
                    found.append(led)
    return found[::-1]


@pytest.mark.parametrize("small_segment_bytes", [0, 1 << 30])
def test_the_history_is_that_of_the_snapshots(tmp_path: Path, small_segment_bytes: int) -> None:
    writer = RecordingWriter(tmp_path / "r", small_segment_bytes=small_segment_bytes)
    for view in script():
        writer.append(view.snapshot)
    for topic, partition in (("invoice", 3), ("invoice", 0), ("audit-log", 3)):
        found = partition_history(Recording.open(tmp_path / "r"), topic, partition)
        assert list(found.led) == by_hand(topic, partition) and found.complete
        assert found.since_ms == script()[0].snapshot.observation.ended_ms
    assert len(by_hand("invoice", 3)) > 2, "the crash is part of it"
    assert partition_history(Recording.open(tmp_path / "r"), "nope", 0).led == ()


def test_reading_ends_in_time(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", segment_s=20.0, small_segment_bytes=0)
    for view in script():
        writer.append(view.snapshot)
    writer.close()
    clock = iter([0.0, *[READS_FOR_S] * 1000])
    found = partition_history(Recording.open(tmp_path / "r"), "invoice", 3, lambda: next(clock))
    assert not found.complete
    assert script()[0].snapshot.observation.ended_ms < found.since_ms
    assert found.led[-1].at_ms >= found.since_ms
