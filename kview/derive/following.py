"""What is known of a topic that is followed: the newest records, where to read on, and how much passes."""

from collections import deque
from typing import NamedTuple

from kview.model.decoded import Decoded, nodes
from kview.model.inspection import Isolation
from kview.model.tail import DEFAULT_TAIL_RECORDS, Positions, TailAnswer, TailRequest
from kview.model.units import UNKNOWN
from kview.model.where import Candidate, Where

MOST_KEPT = 1_000
"""Limit of the records that are kept. Older ones go."""
MOST_KEPT_BYTES = 32 << 20
"""Limit of their bytes."""
WINDOW_MS = 5_000
"""Rates are those of this time."""
POLL_S = 0.5
BYTES_PER_SECOND = 1 << 20
"""Limit of what is fetched: after a larger answer, the next one is asked for later."""
MOST_BYTES_PER_SECOND = 32_000_000
"""Nobody fetches more: half of it fits into the memory for an answer, and into the time between two."""
A_NODE = 200
"""About how many bytes a node of a decoded tree takes, with its name, besides those of a text."""


class Gap(NamedTuple):
    """Stands where records passed while nothing was read, at most as many as there are offsets."""

    records: int


class _Sample(NamedTuple):
    """What an answer came to."""

    asked_ms: int
    passed: int
    skipped: int
    shown: int
    bytes: int


class Rates(NamedTuple):
    """Records and bytes per second. `passing` is an estimate if some were not read."""

    shown: float
    passing: float
    is_estimate: bool
    bytes: float


class Following:
    """A topic that is followed. Time comes with the answers."""

    def __init__(
        self,
        topic: str,
        isolation: Isolation,
        where: Where | None = None,
        typed: str = "",
        count: int = DEFAULT_TAIL_RECORDS,
        bytes_per_second: int = BYTES_PER_SECOND,
    ) -> None:
        """`typed` is what stands for `where`. There are at most two answers a second, of `count` records.

        No more than MOST_BYTES_PER_SECOND are fetched, whatever is asked for; 0 is as much as that.
        """
        self.topic = topic
        self.isolation = isolation
        self.where = where
        self.typed = typed
        self._count = count
        self._bytes_per_second = min(bytes_per_second or MOST_BYTES_PER_SECOND, MOST_BYTES_PER_SECOND)
        self.items: deque[tuple[int, Candidate | Gap]] = deque()
        """Numbered records and gaps, the newest last."""
        self.answer: TailAnswer | None = None
        """The last answer."""
        self.paused = False
        self.shown = self.passed = self.skipped = self.bytes = 0
        """Totals since the beginning."""
        self._positions: Positions = ()
        self._paused_at: dict[int, int] = {}
        self._samples: deque[_Sample] = deque()
        self._next = 0
        self._sizes: deque[int] = deque()
        """Of the items."""
        self._kept_bytes = 0

    def question(self) -> TailRequest:
        """Return what to ask next."""
        most_bytes = int(self._bytes_per_second * POLL_S)
        return TailRequest(self.topic, self._positions, self._count, most_bytes, self.isolation, self.where)

    def take(self, answer: TailAnswer) -> None:
        """Take what came since the last answer."""
        self.answer = answer
        self._positions = answer.positions
        self.shown += len(answer.records)
        self.passed += answer.passed
        self.skipped += answer.skipped
        self.bytes += answer.cost.bytes
        if self._paused_at and answer.positions:
            self._resume(dict(answer.positions))
        for candidate in answer.records:
            self._add(candidate)
        sample = _Sample(
            answer.asked_ms, answer.passed, answer.skipped, len(answer.records), answer.cost.bytes
        )
        if answer.asked_ms != UNKNOWN:
            self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].asked_ms < answer.asked_ms - WINDOW_MS:
            self._samples.popleft()

    def wait_s(self) -> float:
        """Return for how long to wait before the next question, so that no more bytes come than may."""
        spent = self.answer.cost.bytes if self.answer is not None else 0
        return max(POLL_S, spent / self._bytes_per_second)

    def rates(self) -> Rates | None:
        """Return what passed in the last seconds, None before the second answer."""
        if len(self._samples) < 2:
            return None
        first, *others = self._samples
        seconds = max(1, others[-1].asked_ms - first.asked_ms) / 1_000
        skipped = sum(sample.skipped for sample in others)
        passed = sum(sample.passed for sample in others) + skipped
        shown, spent = sum(sample.shown for sample in others), sum(sample.bytes for sample in others)
        return Rates(shown / seconds, passed / seconds, skipped > 0, spent / seconds)

    def pause(self) -> None:
        """Read nothing until `go_on`."""
        self.paused = True
        self._samples.clear()
        self._paused_at = {n: offset for n, offset in self._positions if offset >= 0} | self._paused_at

    def go_on(self) -> None:
        """Read on at the end, wherever that is now."""
        self.paused = False
        self._positions = tuple((partition, UNKNOWN) for partition, _ in self._positions)

    def passed_by(self, ends: dict[int, int]) -> int:
        """Return how many offsets have passed since the pause, by where partitions end now. UNKNOWN if the
        ends are not known."""
        pairs = [(ends[n], offset) for n, offset in self._paused_at.items() if ends.get(n, UNKNOWN) >= 0]
        return sum(max(0, end - offset) for end, offset in pairs) if pairs else UNKNOWN

    def _resume(self, positions: dict[int, int]) -> None:
        missed = self.passed_by(positions)
        if missed > 0:
            self.skipped += missed
            self._add(Gap(missed))
        # Of the others, nobody knows yet what was missed.
        self._paused_at = {
            n: offset for n, offset in self._paused_at.items() if positions.get(n, UNKNOWN) < 0
        }

    def _add(self, item: Candidate | Gap) -> None:
        self.items.append((self._next, item))
        self._next += 1
        self._sizes.append(_size(item))
        self._kept_bytes += self._sizes[-1]
        while len(self.items) > MOST_KEPT or (self._kept_bytes > MOST_KEPT_BYTES and len(self.items) > 1):
            self.items.popleft()
            self._kept_bytes -= self._sizes.popleft()


def _size(item: Candidate | Gap) -> int:
    """Return about how many bytes an item takes."""
    if isinstance(item, Gap):
        return 0
    record, decoded = item.record, item.decoded
    payloads = [record.key, record.value]
    payloads += [part for header in record.headers for part in (header.name, header.value)]
    return sum(len(payload.data or b"") for payload in payloads) + _tree(decoded.key) + _tree(decoded.value)


def _tree(decoded: Decoded | None) -> int:
    """Return about how many bytes take what was decoded. With a mask, its payload says nothing about it."""
    if decoded is None:
        return 0
    json = len(decoded.json.data or b"") if decoded.json is not None else 0
    return json + sum(
        A_NODE + (len(node) if isinstance(node, str | bytes) else 0) for node in nodes(decoded.tree)
    )
