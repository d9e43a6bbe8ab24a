"""Questions to an observer, and a broker that holds the batches that a test gives it."""

import threading
from collections.abc import Sequence
from typing import Any, cast

from kafka.protocol.consumer import FetchRequest, FetchResponse

from kview.model.inspection import Question, RecordsAnswer, RecordsRequest
from kview.observe.observer import Observer
from tests.observe.fake_broker import VERSIONS, FakeBroker
from tests.waiting import PATIENCE_S

FETCH = 1


def answered(observer: Observer, question: Question[Any]) -> Any:
    """The observer's answer. It answers on its own thread, whether it observes meanwhile or not."""
    answers: list[Any] = []
    arrived = threading.Event()

    def take(answer: Any) -> None:
        answers.append(answer)
        arrived.set()

    observer.inspect(question, take)
    assert arrived.wait(PATIENCE_S), f"never answered: {question}"
    return answers[0]


def records(observer: Observer, topic: str, partition: int = 0, **more: Any) -> RecordsAnswer:
    """The answer to a request for records of a partition."""
    return cast(RecordsAnswer, answered(observer, RecordsRequest(topic, partition, **more)))


def offsets(answer: RecordsAnswer) -> list[int]:
    """The offsets of the records in an answer."""
    return [record.offset for record in answer.records]


def values(answer: RecordsAnswer) -> list[bytes | None]:
    """The values of the records in an answer."""
    return [record.value.data for record in answer.records]


class RecordBroker(FakeBroker):
    """Leads `invoice`, whose one partition has `batches`, each with its first offset, as they are.

    `aborted` are (producer, first offset). An answer has the batches from the one that holds the offset asked
    for, as many as fit, but at least one. `errors` are the partition's error numbers of the next answers.
    """

    def __init__(self, batches: Sequence[tuple[int, bytes]], end: int, **options: Any) -> None:
        self.batches = list(batches)
        self.aborted: list[tuple[int, int]] = []
        self.errors: list[int] = []
        self.fetched: list[Any] = []
        """The Fetch requests that came."""
        self.throttled: list[int] = []
        """The throttle times of the next answers, which have no records then."""
        self.behind: list[int] = []
        """The high watermarks of the next answers, which have no records then."""
        self.nonsense = b""
        """What it answers instead, if anything."""
        super().__init__(versions={**VERSIONS, FETCH: (4, 11)}, **options)
        self.high_watermark = end

    def _answer(self, key: int, version: int, frame: bytes) -> tuple[bytes, bool]:
        if key != FETCH:
            return super()._answer(key, version, frame)
        request = FetchRequest.decode(frame, version=version, header=True)
        self.fetched.append(request)
        if self.nonsense:
            return self.nonsense, False
        asked = request.topics[0].partitions[0]
        data = b""
        for first, batch in self.batches:
            last = first + max(0, int.from_bytes(batch[23:27], "big", signed=True))
            if last >= asked.fetch_offset and (not data or len(data) < asked.partition_max_bytes):
                data += batch
        error = self.errors.pop(0) if self.errors else 0
        throttle_ms = self.throttled.pop(0) if self.throttled else 0
        behind = self.behind.pop(0) if self.behind else None
        end = self.high_watermark if behind is None else behind
        topic = FetchResponse.FetchableTopicResponse
        row = topic.PartitionData
        aborted = [
            row.AbortedTransaction(version=version, producer_id=producer, first_offset=offset)
            for producer, offset in self.aborted
        ]
        partition = row(
            version=version,
            partition_index=0,
            error_code=error,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=self.log_start,
            aborted_transactions=aborted if request.isolation_level else None,
            preferred_read_replica=-1,
            records=b"" if error or throttle_ms or behind is not None else data,
        )
        answer = FetchResponse(
            version=version,
            throttle_time_ms=throttle_ms,
            error_code=0,
            session_id=0,
            responses=[topic(version=version, topic="invoice", partitions=[partition])],
        )
        return bytes(answer.encode()), False
