"""A client that fetches in a session, request by request."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from kafka.protocol.consumer import FetchRequest

from kview.wire.primitives import string
from tests.real_kafka.asking import Address, answer_frame
from tests.serve import questions as q

MANY_BYTES = 1 << 20
Partition = tuple[str, int]


class Row(NamedTuple):
    """A partition of an answer: error, high watermark, size of the records, and where to read them."""

    partition: Partition
    error: int
    watermark: int
    size: int
    preferred: int = -1


class Answered(NamedTuple):
    error: int
    session: int
    rows: list[Row]

    @property
    def partitions(self) -> list[int]:
        """The partitions' numbers, in the order of the answer."""
        return [row.partition[1] for row in self.rows]


class Client:
    """A client with a session at the leader of all partitions of some topics."""

    answer: Any
    """The latest answer."""

    def __init__(self, address: Address, version: int, topics: Sequence[str]) -> None:
        self._address = address
        self._version = version
        self._ids: dict[str, UUID] = {name: q.topic_id(address, name) for name in topics}
        self._names = {topic_id: name for name, topic_id in self._ids.items()}
        self.frames: list[bytes] = []
        """All answers, without what is the cluster's own."""

    def fetch(
        self,
        session: int,
        epoch: int,
        asked: Mapping[Partition, int] | None = None,
        forgotten: Sequence[Partition] = (),
        most_bytes: int = MANY_BYTES,
        version: int | None = None,
        last_epoch: int = -1,
        current_epoch: int = -1,
        wait_ms: int = 0,
        rack: str = "",
    ) -> Answered:
        """Fetch partitions from offsets, within the session."""
        version = version or self._version
        per_topic, to_forget = FetchRequest.FetchTopic, FetchRequest.ForgottenTopic
        request = FetchRequest(
            version=version,
            replica_id=-1,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=most_bytes,
            isolation_level=0,
            session_id=session,
            session_epoch=epoch,
            rack_id=rack,
            topics=[
                per_topic(
                    version=version,
                    **self._named(version, name),
                    partitions=[
                        per_topic.FetchPartition(
                            version=version,
                            partition=index,
                            current_leader_epoch=current_epoch,
                            fetch_offset=offset,
                            last_fetched_epoch=last_epoch,
                            log_start_offset=-1,
                            partition_max_bytes=MANY_BYTES,
                        )
                        for (_, index), offset in of_topic
                    ],
                )
                for name, of_topic in groupby((asked or {}).items(), key=lambda item: item[0][0])
            ],
            forgotten_topics_data=[
                to_forget(version=version, **self._named(version, name), partitions=[p for _, p in of_topic])
                for name, of_topic in groupby(forgotten, key=lambda one: one[0])
            ],
        )
        frame = answer_frame(self._address, request, q.ANSWER_S)
        answer = request.header.get_response_class().decode(frame, header=True)
        self.answer = answer
        self.frames.append(self._common(frame, answer.session_id))
        rows = [
            Row((topic.topic or self._names[topic.topic_id], p.partition_index), p.error_code,
                p.high_watermark, len(p.records or b""), p.preferred_read_replica)
            for topic in answer.responses
            for p in topic.partitions
        ]  # fmt: skip
        return Answered(answer.error_code, answer.session_id, rows)

    def _named(self, version: int, name: str) -> dict[str, Any]:
        return {"topic_id": self._ids[name]} if version >= 13 else {"topic": name}

    def _common(self, frame: bytes, session: int) -> bytes:
        frame = frame.replace(session.to_bytes(4, "big"), b"SESS") if session > 0 else frame
        for node in getattr(self.answer, "node_endpoints", None) or ():
            frame = frame.replace(node.port.to_bytes(4, "big"), b"PORT").replace(
                string(node.rack, compact=True), b"RACK"
            )
        for name, topic_id in self._ids.items():
            frame = frame.replace(topic_id.bytes, name.encode())
        return frame
