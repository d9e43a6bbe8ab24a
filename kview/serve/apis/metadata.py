"""Metadata (3), versions 0–13: returns the live brokers, and topics with leaders, replicas and ISRs.

v1 adds racks and the controller, v2 the cluster id, v3 the throttle time, v4 whether the request may create
topics, v5 offline replicas, v7 leader epochs, v8–v10 authorized operations, v9 is flexible, v10 adds topic
ids, v12 look-up by id (by id alone if the request has any), v13 a top-level error. A KRaft broker does not
reveal the controller to its clients. Instead it returns a random live broker, a different one each time.
Topics are packed by hand and cached per metadata image, because every client asks for them.
"""

from collections.abc import Sequence
from struct import Struct, pack

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kview.serve.apis.operations import NOT_ASKED, bits
from kview.serve.call import NO_ID, Api, Call, Steps, id_bytes, no_such_topic
from kview.simulate.acls import OPERATIONS, AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import MetadataImage, PartitionImage, TopicImage
from kview.simulate.topics import CreatableTopic
from kview.wire.primitives import INT16, INT32, array_length, string

AUTO_CREATE = "auto.create.topics.enable"
TOPIC_IDS_FROM, LOOK_UP_FROM, ERROR_FROM = 10, 12, 13

AUTO_CREATE_TIMEOUT_MS = 30_000
CREATED_PER_REQUEST = 100
"""Limit of the topics that one request creates, so that other clients do not wait for it. A client that wants
more asks again, as all clients do until a topic exists."""

MAX_KEPT_TOPICS = 20_000
"""Limit of topics in the cache, enough for 100,000 partitions in topics of five."""

_PARTITION = Struct(">hii")  # error, index, leader


class Packer:
    """Encodes metadata in one version, byte for byte as the codec would. `operations` is the bit field of
    what the client may do with a topic."""

    def __init__(self, version: int, operations: int = NOT_ASKED) -> None:
        self.version = version
        self.operations = operations
        self.flexible = version >= 9
        self.tags = b"\0" if self.flexible else b""

    def ids(self, ids: tuple[int, ...]) -> bytes:
        """Encode an array of broker ids."""
        return array_length(len(ids), self.flexible) + pack(f">{len(ids)}i", *ids)

    def partition(self, image: MetadataImage, index: int, partition: PartitionImage) -> bytes:
        """Encode one partition, with LEADER_NOT_AVAILABLE if it has no leader."""
        error = ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE
        out = _PARTITION.pack(error, index, partition.leader)
        if self.version >= 7:
            out += INT32.pack(partition.leader_epoch)
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
        out = INT16.pack(error) + string(name, self.flexible)
        if self.version >= 10:
            out += topic_id
        if self.version >= 1:
            out += bytes((internal,))
        return out + array_length(partitions, self.flexible)

    def topic_end(self) -> bytes:
        """Encode the part of a topic after its partitions."""
        return (INT32.pack(self.operations) if self.version >= 8 else b"") + self.tags

    def head(self, call: Call, image: MetadataImage) -> bytes:
        """Encode the part before the topics: brokers, cluster id, controller."""
        live = image.live_brokers()
        out = INT32.pack(0) if self.version >= 3 else b""
        out += array_length(len(live), self.flexible)
        for broker in live:
            host, port = call.wire.endpoint(broker)
            out += INT32.pack(broker) + string(host, self.flexible) + INT32.pack(port)
            if self.version >= 1:
                out += string(image.brokers[broker].rack, self.flexible)
            out += self.tags
        if self.version >= 2:
            out += string(image.cluster_id, self.flexible)
        if self.version >= 1:
            out += INT32.pack(any_live_broker(call, live))
        return out

    def end(self, operations: int) -> bytes:
        """Encode the part after the topics. `operations` is what the client may do with the cluster."""
        out = INT32.pack(operations) if 8 <= self.version <= 10 else b""
        return out + (INT16.pack(ErrorCode.NONE) if self.version >= 13 else b"") + self.tags


class KeptTopics:
    """A cache of the packed topics of one metadata image, which is cleared when the image changes."""

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._packed: dict[tuple[int, int, str], bytes] = {}

    def packed(self, packer: Packer, image: MetadataImage, topic: TopicImage) -> bytes:
        """Return the topic's bytes in the version of `packer`."""
        if image is not self._image or len(self._packed) >= MAX_KEPT_TOPICS:
            self._image, self._packed = image, {}
        key = (packer.version, packer.operations, topic.name)
        packed_topic = self._packed.get(key)
        if packed_topic is None:
            packed_topic = self._packed[key] = packer.topic(image, topic)
        return packed_topic


KEPT = KeptTopics()
"""One cache for the entire process, because its brokers share one image except just after a change."""


def metadata(call: Call) -> Steps:
    """Answer from this broker's metadata image, which may be old if the broker is cut off."""
    request, image = call.request, call.image
    wrong = _wrong_topics(call)
    if wrong is not None:
        _answer_wrong(call, wrong)
        return
    packers = Packers(call)
    packer = Packer(call.version)
    everything = request.topics is None or (call.version == 0 and not request.topics)
    if everything:
        topics = []
        everyone = call.cluster.authorizer is None
        for topic in image.topics.values():
            if everyone or call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
                topics.append(KEPT.packed(packers.of(topic.name), image, topic))
            yield
    else:
        by_id = call.version >= LOOK_UP_FROM and any(entry.topic_id for entry in request.topics)
        named: dict[tuple[str | None, bytes], bytes] = {}
        creates = _creates(call)
        for entry in request.topics:
            name_and_id = (None, id_bytes(entry.topic_id)) if by_id else (entry.name, NO_ID)
            if name_and_id not in named and name_and_id != (None, NO_ID):
                named[name_and_id] = _topic(packers, name_and_id, creates)
            yield
        topics = list(named.values())
        if creates:
            missing = [name for name, _ in named if name is not None and name not in image.topics]
            _create(call, [name for name in missing if _may_create(call, name)])
    operations = NOT_ASKED
    if 8 <= call.version <= 10 and request.include_cluster_authorized_operations:
        describes = call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER)
        operations = bits(call.operations(ResourceType.CLUSTER)) if describes else 0
    end = packer.end(operations)
    call.answer_packed((packer.head(call, image), array_length(len(topics), packer.flexible), *topics, end))


def _wrong_topics(call: Call) -> ErrorCode | None:
    """Return the error for a request with entries that name no topic, or an id before there is look-up by id,
    or None."""
    if call.version < TOPIC_IDS_FROM or call.request.topics is None:
        return None
    look_up = call.version >= LOOK_UP_FROM
    if not look_up and any(entry.topic_id or entry.name is None for entry in call.request.topics):
        return ErrorCode.INVALID_REQUEST
    if any(not entry.topic_id and entry.name is None for entry in call.request.topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _answer_wrong(call: Call, error: ErrorCode) -> None:
    """Answer each topic with an error, and nothing else."""
    topic = MetadataResponse.MetadataResponseTopic
    rows = [
        topic(
            version=call.version,
            error_code=error,
            name=entry.name or "",
            topic_id=entry.topic_id,
            partitions=[],
        )
        for entry in call.request.topics
    ]
    top = {"error_code": error} if call.version >= ERROR_FROM else {}
    call.answer(
        MetadataResponse(
            version=call.version, brokers=[], cluster_id=None, controller_id=-1, topics=rows, **top
        )
    )


def any_live_broker(call: Call, live: tuple[int, ...]) -> int:
    """Return a random live broker, which is what a KRaft broker names as the controller, or −1 if there is
    none."""
    return call.cluster.kernel.random("serve/controller").choice(live) if live else -1


class Packers:
    """The packer for each topic of one request. Topics with which the client may do the same share one."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.plain = Packer(call.version)
        self._asked = call.version >= 8 and call.request.include_topic_authorized_operations
        self._packers: dict[int, Packer] = {}
        self._of_all = (
            self._of(bits(OPERATIONS[ResourceType.TOPIC])) if call.cluster.authorizer is None else None
        )

    def of(self, name: str) -> Packer:
        """Return the packer for a topic of this name, which need not exist."""
        if not self._asked:
            return self.plain
        return self._of_all or self._of(bits(self.call.operations(ResourceType.TOPIC, name)))

    def _of(self, operations: int) -> Packer:
        if operations not in self._packers:
            self._packers[operations] = Packer(self.call.version, operations)
        return self._packers[operations]


def _topic(packers: Packers, name_and_id: tuple[str | None, bytes], creates: bool) -> bytes:
    """Encode a topic named by name or id. Only clients that may describe it learn whether it exists."""
    call, (name, topic_id) = packers.call, name_and_id
    image = call.image
    topic = image.topic_by_id(topic_id) if name is None else image.topics.get(name)
    known = name if topic is None else topic.name
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if known is None:
        no_name = None if call.version >= 12 else ""
        return packers.plain.no_topic(ErrorCode.UNKNOWN_TOPIC_ID, no_name, topic_id)
    if not call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, known):
        return packers.plain.no_topic(refused, name, topic_id)
    if topic is not None:
        return KEPT.packed(packers.of(known), image, topic)
    if creates and not _may_create(call, known):
        return packers.plain.no_topic(refused, name, NO_ID)
    return packers.of(known).no_topic(no_such_topic(known), name, NO_ID)


def _creates(call: Call) -> bool:
    """Return whether missing topics are created, if the client may do that."""
    asked = call.version < 4 or call.request.allow_auto_topic_creation
    return asked and call.cluster.settings.flag(AUTO_CREATE)


def _may_create(call: Call, name: str) -> bool:
    create = AclOperation.CREATE
    return call.may(create, ResourceType.CLUSTER) or call.may(create, ResourceType.TOPIC, name)


def _create(call: Call, names: Sequence[str]) -> None:
    """Create topics that a client asked for. The client will ask again."""
    for name in names[:CREATED_PER_REQUEST]:
        call.cluster.topics.create_topic(
            call.broker, CreatableTopic(name), False, AUTO_CREATE_TIMEOUT_MS, lambda result: None
        )


APIS = (Api(3, MetadataRequest, (0, 13), metadata, throttle_from=3),)
