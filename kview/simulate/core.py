"""The parts of a cluster and how they reach each other. Requests and faults build on this module."""

from typing import TYPE_CHECKING

from kview.simulate.broker import Broker, connect
from kview.simulate.controller import Controller
from kview.simulate.kernel import Kernel
from kview.simulate.metadata import MetadataImage, TopicPartition
from kview.simulate.nodes import Node, ProcessListener, ProcessState
from kview.simulate.quorum import Quorum
from kview.simulate.replica import Replica
from kview.simulate.replication import Pair
from kview.simulate.settings import Settings
from kview.simulate.world import World

if TYPE_CHECKING:
    from kview.simulate.groups.of_cluster import Coordinators

FIRST_EPOCH = 1
"""The controller epoch that a world starts with."""


class ClusterCore:
    """The nodes, quorum, controller and brokers, and the replication pairs between the brokers."""

    coordinators: "Coordinators"

    def __init__(self, world: World, seed: int, start_us: int) -> None:
        self.world = world
        self.settings = Settings(world.settings)
        self.kernel = Kernel(seed, start_us)
        racks = {spec.id: spec.rack for spec in world.brokers}
        self.nodes = {b: Node(b, rack, False) for b, rack in racks.items()}
        self.nodes |= {c: Node(c, "", True) for c in world.controllers}
        self.touched: dict[TopicPartition, None] | None = None
        self.client_bytes = 0
        self._listeners: list[ProcessListener] = []
        self._topic_rules: dict[str, tuple[int, bool]] = {}

    def assemble(self, image: MetadataImage) -> None:
        """Assemble the parts around the first metadata image."""
        self.brokers: dict[int, Broker] = {}
        self.quorum_state = Quorum(self, FIRST_EPOCH, image.offset)
        self.controller = Controller(self, image)
        self.brokers.update(
            (b, Broker(self, node, image)) for b, node in self.nodes.items() if not node.is_controller
        )
        self.pairs = connect(self.brokers)

    # --- used by the parts among themselves

    def pair(self, leader: int, follower: int) -> Pair:
        """Return the pair through which `follower` fetches from `leader`."""
        return self.pairs[leader][follower]

    def touch(self, key: TopicPartition) -> None:
        """Mark a partition as changed so that its invariants are checked."""
        if self.touched is not None:
            self.touched[key] = None

    def metadata_committed(self, keys: list[TopicPartition]) -> None:
        """Announce a step of the metadata that changed the partitions `keys`."""
        if self.touched is not None:
            self.touched.update(dict.fromkeys(keys))
        self.publish()

    def publish(self) -> None:
        """Let every running broker fetch the controller's metadata."""
        for broker in self.brokers.values():
            if broker.node.running:
                broker.metadata_changed()

    def image_changed(self, broker: int) -> None:
        """Tell a broker's group coordinator that the broker has new metadata."""
        self.coordinators.metadata_changed(broker)

    def booting(self, node: int) -> bool:
        """Return whether this node is a broker whose process runs but has not registered yet."""
        broker = self.brokers.get(node)
        return broker is not None and broker.broker_epoch < 0

    def _rules(self, topic: str) -> tuple[int, bool]:
        rules = self._topic_rules.get(topic)
        if rules is None:
            found = self.controller.image.topics.get(topic)
            configs = found.configs if found is not None else {}
            min_isr = int(self.settings.topic(configs, "min.insync.replicas"))
            unclean = self.settings.topic(configs, "unclean.leader.election.enable") == "true"
            rules = min_isr, unclean
            if found is not None:
                self._topic_rules[topic] = rules
        return rules

    def forget_rules(self, topic: str) -> None:
        """Drop the cached rules of a deleted topic.

        A new topic of that name has its own configurations.
        """
        self._topic_rules.pop(topic, None)

    def min_insync_replicas(self, topic: str) -> int:
        """Return the topic's effective min.insync.replicas."""
        return self._rules(topic)[0]

    def unclean_election(self, topic: str) -> bool:
        """Return the topic's effective unclean.leader.election.enable."""
        return self._rules(topic)[1]

    def new_topic_id(self) -> bytes:
        """Return a new topic id of 16 bytes, in the form of a random UUID."""
        bits = self.kernel.random("topic-ids").getrandbits(128)
        raw = bytearray(bits.to_bytes(16, "big"))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)

    def leader_replica(self, key: TopicPartition) -> Replica | None:
        """Return the replica that leads by the controller's metadata.

        Returns None if that replica does not know yet that it leads.
        """
        image = self.controller.image
        partition = image.partition(*key)
        broker = self.brokers.get(partition.leader) if partition is not None else None
        replica = broker.replicas.get(key) if broker is not None else None
        if replica is None or not replica.leading or replica.topic_id != image.topics[key[0]].topic_id:
            return None
        return replica

    def all_replicas(self, key: TopicPartition, topic_id: bytes) -> list[Replica]:
        """Return all replicas of this topic's partition, including those on brokers that are down."""
        found = (broker.replicas.get(key) for broker in self.brokers.values())
        return [replica for replica in found if replica is not None and replica.topic_id == topic_id]

    # --- processes

    def broker_ids(self) -> tuple[int, ...]:
        """Return the broker ids in order."""
        return tuple(self.brokers)

    def process(self, node: int) -> ProcessState:
        """Return the state of a node's process."""
        return self.nodes[node].state

    def slow_ms(self, node: int) -> int:
        """Return the latency in ms that a fault adds to each of the node's answers."""
        return self.nodes[node].slow_us // 1000

    def on_process_change(self, listener: ProcessListener) -> None:
        """Call `listener(node, state)` whenever the process of a broker or controller changes."""
        self._listeners.append(listener)

    def set_process(self, node: Node, state: ProcessState) -> None:
        """Change the state of a process and notify the listeners."""
        node.state = state
        self.kernel.trace("process", node.id, state.value)
        for leader, pairs in self.pairs.items():
            for follower, pair in pairs.items():
                if node.id in (leader, follower):
                    pair.processes_changed()
        for listener in self._listeners:
            listener(node.id, state)

    def stopped(self, broker: int) -> None:
        """Complete a controlled shutdown."""
        node = self.nodes[broker]
        node.stopping = False
        self.set_process(node, ProcessState.STOPPED)
        self.brokers[broker].died(clean=True)
        self.drop_connections(broker)
        if self.controller.ready() and not self.controller.image.brokers[broker].fenced:
            self.controller.fence(broker)

    def drop_connections(self, broker: int) -> None:
        """Cut all fetches to and from a broker whose process has ended."""
        for other, theirs in self.brokers.items():
            if other != broker:
                theirs.unreachable(broker)
                self.pairs[broker][other].cut()
                self.pairs[other][broker].cut()
