"""Where the segments of a compacted log end, which matters because the last of them is never cleaned.

Logs here are not stored in segments. Source of the rules: UnifiedLog.maybeRoll and LogSegment.shouldRoll.
"""

from dataclasses import dataclass
from itertools import islice

from kview.simulate.log import Log
from kview.simulate.records import header
from kview.simulate.stream import Stream

SEGMENTS_MAX = 4096
"""Segments of a log that are closed, in 1 MB. Neighbours beyond are one, so that tiny ones stay few."""
ENTRIES_PER_READ = 20_000
"""Limit of what is read at once, in about 50 ms."""


@dataclass(slots=True)
class Segment:
    """A segment from offset `base` up to `end`: its size, and the latest times of its first batch and of all,
    in µs."""

    base: int
    end: int
    size_bytes: int = 0
    first_us: int = -1
    latest_us: int = -1


class Segments:
    """The segments of one log from offset `start` on, as far as the leader of `epoch` has read it."""

    def __init__(self, start: int, epoch: int) -> None:
        self.begin = start, epoch
        self.closed: list[Segment] = []
        self.active = Segment(start, start)

    def read(self, log: Log, most_bytes: int, most_us: int) -> None:
        """Read what was appended since the last call. A segment has at most `most_bytes`, and times that are
        at most `most_us` apart, unless it has what would be too many segments."""
        least = max(1, (log.end - self.active.end) // SEGMENTS_MAX)
        for span, at, first, end in islice(log.entries(self.active.end, log.end), ENTRIES_PER_READ):
            stream, place = span.stream, first
            while place < end:
                place = self._put(stream, at, place, end, most_bytes, most_us, least)
            while len(self.closed) > SEGMENTS_MAX:
                self._merge()

    def _merge(self) -> None:
        """Make one segment of every two of the older half."""
        old = len(self.closed) // 4 * 2
        for one, other in zip(self.closed[:old:2], self.closed[1:old:2], strict=True):
            one.end = other.end
            one.size_bytes += other.size_bytes
            one.latest_us = max(one.latest_us, other.latest_us)
        del self.closed[1:old:2]

    def _put(
        self, stream: Stream, at: int, first: int, end: int, most_bytes: int, most_us: int, least: int
    ) -> int:
        """Put what entry `at` of a stream has in [first, end) into the active segment, or into a new one.

        Returns how far it got: a batch goes whole into one segment, simulated records fill it, at least
        `least` of them.
        """
        active, batch, size = self.active, stream.batches[at], stream.record_bytes[at]
        if batch is not None:
            first_us = latest_us = header(batch).max_time_ms * 1000 if batch else active.first_us
            size, count = len(batch), end - first
        else:
            step_us = stream.step_us[at]
            first_us = stream.first_us[at] + (first - stream.base[at]) * step_us
            least = min(least, end - first)
            count = max(least, min(end - first, (most_bytes - active.size_bytes) // size))
            if step_us:
                since_us = active.first_us if active.size_bytes else first_us
                count = max(least, min(count, (since_us + most_us - first_us) // step_us + 1))
            latest_us, size = first_us + (count - 1) * step_us, size * count
        if active.size_bytes and (
            active.size_bytes + size > most_bytes or first_us - active.first_us > most_us
        ):
            self.closed.append(active)
            active = self.active = Segment(first, first)
        if not active.size_bytes:
            active.first_us = first_us
        active.size_bytes += size
        active.latest_us = max(active.latest_us, latest_us)
        active.end = first + count
        return active.end
