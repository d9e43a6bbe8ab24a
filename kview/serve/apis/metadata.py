"""Metadata (3), versions 0–13: the live brokers, and topics with leaders, replicas and ISRs.

v1 adds racks and the controller, v2 the cluster id, v3 the throttle time, v4 whether the request may create
topics, v5 offline replicas, v7 leader epochs, v8–v10 authorized operations, v9 is flexible, v10 adds topic
ids, v12 look-up by id, v13 a top-level error. A KRaft broker does not reveal the controller to its clients.
Instead it returns a random live broker, a different one each time. Topics are packed by hand and cached per
metadata image, because every client asks for them. Left out on purpose: authorized operations (null).
"""

from struct import Struct, pack
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from kview.serve.apis.fetch import unsigned
from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import MetadataImage, PartitionImage, TopicImage

NO_OPERATIONS = -(2**31)
AUTO_CREATE = "auto.create.topics.enable"
BROKER_DEFAULT = -1
"""Requests the broker's default number of partitions and replicas for an auto-created topic."""

AUTO_CREATE_TIMEOUT_MS = 30_000
MAX_KEPT_TOPICS = 20_000
"""Limit of cached packed topics: 100,000 partitions in topics of five."""

_COUNT = Struct(">i")
_LENGTH = Struct(">h")
_BROKER = Struct(">i")
_PARTITION = Struct(">hii")  # error, index, leader


class Packer:
    """Encodes metadata in one version, byte for byte as the codec would."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.flexible = version >= 9
        self.tags = b"\0" if self.flexible else b""

    def count(self, number: int) -> bytes:
        """Encode the length of an array."""
        return unsigned(number + 1) if self.flexible else _COUNT.pack(number)

    def string(self, text: str | None) -> bytes:
        """Encode a nullable string."""
        if text is None:
            return b"\0" if self.flexible else b"\xff\xff"
        data = text.encode()
        return (unsigned(len(data) + 1) if self.flexible else _LENGTH.pack(len(data))) + data

    def ids(self, ids: tuple[int, ...]) -> bytes:
        """Encode an array of broker ids."""
        return self.count(len(ids)) + pack(f">{len(ids)}i", *ids)

    def partition(self, image: MetadataImage, index: int, partition: PartitionImage) -> bytes:
        """Encode one partition, with LEADER_NOT_AVAILABLE if it has no leader."""
        error = ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE
        out = _PARTITION.pack(error, index, partition.leader)
        if self.version >= 7:
            out += _COUNT.pack(partition.leader_epoch)
        out += self.ids(partition.replicas) + self.ids(partition.isr)
        if self.version >= 5:
            out += self.ids(image.offline_replicas(partition))
        return out + self.tags

    def topic(self, image: MetadataImage, topic: TopicImage) -> bytes:
        """Encode one topic with all its partitions."""
        partitions = (self.partition(image, index, p) for index, p in enumerate(topic.partitions))
        return (
            self.topic_head(ErrorCode.NONE, topic.name, topic.topic_id, topic.internal, len(topic.partitions))
            + b"".join(partitions)
            + self.topic_end()
        )

    def no_topic(self, error: ErrorCode, name: str | None, topic_id: bytes) -> bytes:
        """Encode the error for a topic that does not exist."""
        return self.topic_head(error, name, topic_id, False, 0) + self.topic_end()

    def topic_head(
        self, error: ErrorCode, name: str | None, topic_id: bytes, internal: bool, partitions: int
    ) -> bytes:
        """Encode the part of a topic before its partitions."""
        out = _LENGTH.pack(error) + self.string(name)
        if self.version >= 10:
            out += topic_id
        if self.version >= 1:
            out += bytes((internal,))
        return out + self.count(partitions)

    def topic_end(self) -> bytes:
        """Encode the part of a topic after its partitions."""
        return (_COUNT.pack(NO_OPERATIONS) if self.version >= 8 else b"") + self.tags

    def head(self, call: Call, image: MetadataImage) -> bytes:
        """Encode the part before the topics: brokers, cluster id, controller."""
        live = image.live_brokers()
        out = _COUNT.pack(0) if self.version >= 3 else b""
        out += self.count(len(live))
        for broker in live:
            host, port = call.wire.endpoint(broker)
            out += _BROKER.pack(broker) + self.string(host) + _BROKER.pack(port)
            if self.version >= 1:
                out += self.string(image.brokers[broker].rack)
            out += self.tags
        if self.version >= 2:
            out += self.string(image.cluster_id)
        if self.version >= 1:
            out += _BROKER.pack(any_live_broker(call, live))
        return out

    def end(self) -> bytes:
        """Encode the part after the topics."""
        out = _COUNT.pack(NO_OPERATIONS) if 8 <= self.version <= 10 else b""
        return out + (_LENGTH.pack(ErrorCode.NONE) if self.version >= 13 else b"") + self.tags


class KeptTopics:
    """A cache of the packed topics of one metadata image, which is cleared when the image changes."""

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._packed: dict[tuple[int, str], bytes] = {}

    def packed(self, packer: Packer, image: MetadataImage, topic: TopicImage) -> bytes:
        """Return the topic's bytes in the version of `packer`."""
        if image is not self._image or len(self._packed) >= MAX_KEPT_TOPICS:
            self._image, self._packed = image, {}
        key = (packer.version, topic.name)
        found = self._packed.get(key)
        if found is None:
            found = self._packed[key] = packer.topic(image, topic)
        return found


KEPT = KeptTopics()
"""The cache of the process, because brokers share an image except in the moments after a change."""


def metadata(call: Call) -> None:
    """Answer from this broker's metadata image, which may be old if the broker is cut off."""
    request, image = call.request, call.image
    packer = Packer(call.version)
    everything = request.topics is None or (call.version == 0 and not request.topics)
    if everything:
        topics = [KEPT.packed(packer, image, topic) for topic in image.topics.values()]
    else:
        topics = [_topic(call, packer, image, entry) for entry in request.topics]
    call.answer_packed((packer.head(call, image), packer.count(len(topics)), *topics, packer.end()))


def any_live_broker(call: Call, live: tuple[int, ...]) -> int:
    """Return the broker that a KRaft broker names as the controller, which is a random live broker."""
    return call.cluster.kernel.random("serve/controller").choice(live) if live else -1


def _topic(call: Call, packer: Packer, image: MetadataImage, entry: Any) -> bytes:
    if entry.name is None:
        topic_id = entry.topic_id.bytes if entry.topic_id is not None else bytes(16)
        by_id = image.topic_by_id(topic_id)
        if by_id is None:
            return packer.no_topic(ErrorCode.UNKNOWN_TOPIC_ID, None if packer.version >= 12 else "", topic_id)
        return KEPT.packed(packer, image, by_id)
    found = image.topics.get(entry.name)
    if found is not None:
        return KEPT.packed(packer, image, found)
    if call.version < 4 or call.request.allow_auto_topic_creation:
        _create(call, entry.name)
    return packer.no_topic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, entry.name, bytes(16))


def _create(call: Call, name: str) -> None:
    """Create a topic that a client asked for, if the settings allow it. The client will ask again."""
    configs = {entry.name: entry.value for entry in call.cluster.broker_configs(call.broker)}
    if configs.get(AUTO_CREATE, "true") == "true":
        call.cluster.create_topic(
            call.broker,
            name,
            BROKER_DEFAULT,
            BROKER_DEFAULT,
            None,
            {},
            False,
            AUTO_CREATE_TIMEOUT_MS,
            lambda result: None,
        )


APIS = (Api(3, MetadataRequest, (0, 13), metadata),)
