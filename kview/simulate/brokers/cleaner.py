"""The log cleaner, which compacts the logs whose topics have cleanup.policy=compact.

Sources: kafka.log.LogCleaner and LogCleanerManager. A leader's broker cleans for all replicas that agree as
far. In Kafka each broker cleans its own, and offsets agree. The passes take their time, in small steps.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.partitions import Partitions
from kview.simulate.brokers.replica import Replica
from kview.simulate.brokers.retention import Retention
from kview.simulate.brokers.segments import Segment, Segments
from kview.simulate.compaction import RECORDS_PER_STEP, Cleaning, LastRecord, OffsetMap, finished
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.kernel import Kernel
from kview.simulate.log import Span
from kview.simulate.reading import RecordMaker
from kview.simulate.records import header

STEP_US = 10_000
"""Time between two steps of a pass."""
MS = 1_000

BACKOFF = "log.cleaner.backoff.ms"
BACKOFF_MS_MIN = 100
"""Shorter ones would look at all logs all the time."""


class _Rules(NamedTuple):
    """A topic's settings for its cleaning. Times are in µs."""

    dirty_ratio: float
    least_lag_us: int
    most_lag_us: int
    delete_retention_ms: int
    segment_bytes: int
    segment_us: int


class Cleaner:
    """Cleans the logs of all brokers."""

    def __init__(
        self,
        kernel: Kernel,
        configs: EffectiveConfigs,
        partitions: Partitions,
        retention: Retention,
        maker: RecordMaker,
    ) -> None:
        self._kernel = kernel
        self._configs = configs
        self._partitions = partitions
        self._retention = retention
        self._maker = maker
        self._segments: dict[Replica, Segments] = {}
        self._passes: dict[Replica, Iterator[None]] = {}

    def watch(self, broker: Broker) -> None:
        """Look for logs to clean at intervals, from each start of the broker's process on."""

        def started() -> None:
            for replica in [one for one in self._passes if one.broker is broker]:
                del self._passes[replica]
            if self._configs.settings.flag("log.cleaner.enable"):
                phase_us = self._kernel.random("cleaner").randrange(self._backoff_us(broker))
                broker.process.after(phase_us, self._check, broker)

        broker.on_start(started)

    def clean_now(self, broker: Broker, replica: Replica) -> None:
        """Clean all of a log that is committed, whatever its settings say, because much depends on its
        length."""
        stable = replica.last_stable()
        if replica.leading and stable > replica.log.dirty_from:
            dynamic = self._configs.of_broker(broker.id)
            self._begin(broker, replica, stable, self._rules(broker, replica.key[0], dynamic))

    def _backoff_us(self, broker: Broker) -> int:
        dynamic = self._configs.of_broker(broker.id)
        return max(BACKOFF_MS_MIN, int(dynamic.get(BACKOFF, self._configs.settings.text(BACKOFF)))) * MS

    def _check(self, broker: Broker) -> None:
        broker.process.after(self._backoff_us(broker), self._check, broker)
        for replica in [one for one in self._segments if broker.replicas.get(one.key) is not one]:
            if replica.broker is broker:
                del self._segments[replica]
        by_topic: dict[str, _Rules | None] = {}
        dynamic = self._configs.of_broker(broker.id)
        for replica in list(broker.replicas.values()):
            topic = replica.key[0]
            if topic not in by_topic:
                by_topic[topic] = self._rules(broker, topic, dynamic)
            rules = by_topic[topic]
            if rules is None or not replica.leading or replica in self._passes:
                continue
            if (stop := self._cleanable_to(replica, rules)) > replica.log.dirty_from:
                self._begin(broker, replica, stop, rules)

    def _rules(self, broker: Broker, topic: str, dynamic: Mapping[str, str]) -> _Rules | None:
        """Return the rules of a compacted topic, None for others."""
        image = broker.image.topics.get(topic)
        if image is None:
            return None
        settings = self._configs.settings

        def value(name: str) -> str:
            return settings.topic(image.configs, name, dynamic)

        if "compact" not in value("cleanup.policy"):
            return None
        most_lag_ms = int(value("max.compaction.lag.ms"))
        return _Rules(
            float(value("min.cleanable.dirty.ratio")),
            int(value("min.compaction.lag.ms")) * MS,
            most_lag_ms * MS,
            int(value("delete.retention.ms")),
            int(value("segment.bytes")),
            min(most_lag_ms, int(value("segment.ms"))) * MS,
        )

    def _cleanable_to(self, replica: Replica, rules: _Rules) -> int:
        """Return the offset up to which a log is to be cleaned now, or where its dirty part begins."""
        log, now_us = replica.log, self._kernel.now_us
        segments = self._segments.get(replica)
        if segments is None or segments.begin != (log.dirty_from, replica.leader_epoch):
            segments = self._segments[replica] = Segments(log.dirty_from, replica.leader_epoch)
        segments.read(log, rules.segment_bytes, rules.segment_us)
        stable = replica.last_stable()
        cleanable: list[Segment] = []
        for segment in segments.closed:
            is_young = rules.least_lag_us and segment.latest_us > now_us - rules.least_lag_us
            if segment.end > stable or is_young:
                break
            cleanable.append(segment)
        if not cleanable:
            return log.dirty_from
        clean_bytes = log.size_between(log.start, log.dirty_from)
        dirty_bytes = sum(segment.size_bytes for segment in cleanable)
        is_late = any(0 < one.first_us < now_us - rules.most_lag_us for one in segments.closed)
        is_dirty = dirty_bytes > rules.dirty_ratio * (clean_bytes + dirty_bytes)
        return cleanable[-1].end if is_late or is_dirty else log.dirty_from

    def _begin(self, broker: Broker, replica: Replica, stop: int, rules: _Rules | None) -> None:
        if replica in self._passes or rules is None:
            return
        self._passes[replica] = self._pass(replica, stop, rules.delete_retention_ms)
        self._go_on(broker, replica)

    def _go_on(self, broker: Broker, replica: Replica) -> None:
        cleaning = self._passes.get(replica)
        if cleaning is None:
            return
        is_over = True
        try:
            is_over = next(cleaning, self) is self
        finally:
            if is_over:
                del self._passes[replica]
        if not is_over:
            broker.process.after(STEP_US, self._go_on, broker, replica)

    def _pass(self, replica: Replica, stop: int, delete_retention_ms: int) -> Iterator[None]:
        """Clean a log up to `stop`, if nothing happens to it in the meantime."""
        log, topic, partition = replica.log, *replica.key

        def state() -> tuple[object, ...]:
            return replica.leading, replica.leader_epoch, log.start, log.dirty_from, list(log.spans)

        begin = state()

        def is_over() -> bool:
            return state() != begin

        latest = OffsetMap(log.aborted(log.dirty_from, stop), log.dirty_from)
        for span, at, first, end in self._entries(replica, log.dirty_from, stop):
            if span is None:
                yield
                if is_over():
                    return
                continue
            batch = span.stream.batches[at]
            if batch is None:
                run = span.stream.run(at, first, end)
                has_room = latest.add_keys(self._maker.last_offsets(topic, partition, run), end)
            else:
                has_room = not batch or (yield from latest.add(span.stream.batch_base(at, batch), batch))
            if not has_room:
                break
        else:
            latest.end = stop
        stop = latest.end
        cleaning = Cleaning(
            latest,
            log.aborted(log.start, stop),
            _last_records(replica),
            self._kernel.now_us // MS,
            delete_retention_ms,
        )
        left: dict[Span, list[tuple[int, bytes]]] = {}
        for span, at, first, end in self._entries(replica, log.start, stop):
            if span is None:
                yield
                if is_over():
                    return
                continue
            of_span = left.setdefault(span, [])
            batch = span.stream.batches[at]
            if batch is None:
                of_span += self._clean_run(replica, span, at, first, end, latest, cleaning)
            elif batch and (rest := (yield from cleaning.clean(span.stream.batch_base(at, batch), batch))):
                of_span.append((end, rest))
        self._swap(replica, stop, left, cleaning)

    def _entries(
        self, replica: Replica, start: int, stop: int
    ) -> Iterator[tuple[Span | None, int, int, int]]:
        """Yield the entries of a log, and after each step (None, 0, 0, 0).

        After a batch that is worked on in steps of its own, the log may have changed. So a step ends there.
        Simulated records are cut into pieces.
        """
        at = start
        while at < stop:
            records = 0
            for span, number, first, end in replica.log.entries(at, stop):
                batch = span.stream.batches[number]
                at = end = end if batch is not None else min(end, first + RECORDS_PER_STEP - records)
                yield span, number, first, end
                records += header(batch).records if batch else 1 if batch is not None else end - first
                if records >= RECORDS_PER_STEP:
                    break
            else:
                return
            yield None, 0, 0, 0

    def _clean_run(
        self,
        replica: Replica,
        span: Span,
        at: int,
        first: int,
        end: int,
        latest: OffsetMap,
        cleaning: Cleaning,
    ) -> Iterator[tuple[int, bytes]]:
        """Yield what is left of simulated records, as the batches in which consumers read them."""
        stream, (topic, partition) = span.stream, replica.key
        base = stream.base[at]
        last = self._maker.last_offsets(topic, partition, stream.run(at, first, end))
        offsets = {offset for key, offset in last.items() if latest.is_last(key, offset)}
        if end == latest.end:
            offsets.add(end - 1)
        size = self._maker.records_per_batch(stream.record_bytes[at])
        for number in sorted({(offset - base) // size for offset in offsets}):
            begin, after = max(first, base + number * size), min(base + (number + 1) * size, end)
            batch = self._maker.batch(topic, partition, span.epoch, stream.run(at, begin, after))
            rest = finished(cleaning.clean(begin, batch))
            if rest:
                yield after, rest

    def _swap(
        self, replica: Replica, stop: int, left: Mapping[Span, list[tuple[int, bytes]]], cleaning: Cleaning
    ) -> None:
        """Put what is left in place of what the log had up to `stop`."""
        log = replica.log
        ends = dict(log.spans_with_ends())  # as `left` knows the spans
        log.dirty_from = stop
        log.cleaned_to = max(log.cleaned_to, stop)
        others = self._partitions.replicas(replica.key, replica.topic_id)
        lacking = [other for other in others if other.log.agreement(log) < stop]
        used = {id(span.stream) for other in lacking for span in other.log.spans}
        copies = {id(one.stream): one.stream.copy() for one in left if id(one.stream) in used}
        for other in others:
            if other not in lacking:
                other.log.adopt(log, stop)
                continue
            other.log.keep_as_it_is(copies)
            if other.stream is not None:  # It leads, perhaps because it has not heard of this leader.
                other.stream = other.log.spans[-1].stream
        # This is more than the memory that they take, and stays counted until `evict` counts again.
        self._retention.client_bytes += sum(copy.held_bytes for copy in copies.values())
        kept = sorted(cleaning.aborted, key=lambda one: one.last)
        for span, batches in left.items():
            stream, end = span.stream, min(stop, ends[span])
            first = stream.entry_at(max(log.start, span.start))
            self._retention.client_bytes += stream.replace(first, end, batches)
            stream.aborted = [one for one in kept if span.start <= one.last < end] + [
                one for one in stream.aborted if one.last >= end
            ]
        self._kernel.trace("cleaned", *replica.key, stop)
        if self._retention.client_bytes > self._retention.client_bytes_max:
            self._retention.evict()


def _last_records(replica: Replica) -> dict[int, LastRecord]:
    """Return the last batch of each producer that the log's leader remembers."""
    return {
        producer_id: LastRecord(offset, epoch)
        for producer_id, offset, epoch in replica.producer_states().last_offsets()
    }
