"""What can be adjusted in a running cluster: rates of producers, members of groups, links, settings of
topics, transactions."""

from collections.abc import Mapping
from contextlib import suppress

from kview.errors import BadUse, ErrorKind
from kview.model.lab import (
    Command,
    CommandKind,
    GroupSetting,
    LabSettings,
    LinkSetting,
    ProducerSetting,
    TopicSetting,
)
from kview.simulate.alterations import MIN_ISR, Alteration, Operation
from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.quorum import FORWARD_TIMEOUT_MS, Quorum
from kview.simulate.metadata import TopicImage, TopicPartition
from kview.simulate.requests.admin import Admin
from kview.simulate.results import AdminResult
from kview.simulate.traffic.member import Phase
from kview.simulate.traffic.producer import SimulatedProducer
from kview.simulate.traffic.traffic import AnyMember, Traffic
from kview.simulate.transactions.hanging import Hanging
from kview.simulate.world import INTERNAL_TOPICS, World

MOST_RECORDS_PER_SECOND = 1_000_000
LEAST_BYTES_PER_SECOND = 1_000
MOST_BYTES_PER_SECOND = 10_000_000_000
MOST_MEMBERS = MOST_PRODUCERS = 100
"""Limits of what can be asked for: more would test the machine, not a cluster."""


_DECIDED = (CommandKind.SET, CommandKind.UNSET, CommandKind.ELECT)
"""What only an active controller can do."""


class Adjustments:
    """Carries out adjustments, and returns what is set now. `world` is what was set at the start."""

    def __init__(
        self,
        world: World,
        brokers: Mapping[int, Broker],
        configs: EffectiveConfigs,
        quorum: Quorum,
        admin: Admin,
        traffic: Traffic,
        hanging: Hanging,
    ) -> None:
        self._brokers = brokers
        self._configs = configs
        self._quorum = quorum
        self._admin = admin
        self._traffic = traffic
        self._hanging = hanging
        self._paused_rates: dict[str, float] = {}
        """The rates of paused producers, to which they return."""
        self._initial_rates = {spec.client_id: spec.records_per_second for spec in world.producers}
        self._initial_members = {spec.name: spec.members for spec in world.groups}
        self._initial_bandwidth = world.link.bytes_per_second
        self._initial_configs = {spec.name: spec.configs for spec in world.topics}

    def apply(self, wanted: Command) -> Command | None:
        """Carry out an adjustment. Returns the one that undoes it, or None if there is none.

        Raises BadUse if the adjustment is not possible. Without an active controller Kafka lets a client wait
        for its time limit, REQUEST_TIMED_OUT; here the refusal comes at once.
        """
        if wanted.kind in _DECIDED and not self._quorum.active():
            raise BadUse(ErrorKind.NO_CONTROLLER_TO_CHANGE, topic=wanted.name)
        match wanted.kind:
            case CommandKind.RATE:
                return self._set_rate(wanted.name, wanted.amount)
            case CommandKind.PAUSE_PRODUCER | CommandKind.RESUME_PRODUCER:
                return self._pause_producer(wanted.name, wanted.kind is CommandKind.PAUSE_PRODUCER)
            case CommandKind.TAKE_OVER:
                self._take_over(wanted.name)
                return None
            case CommandKind.HANG_TRANSACTION:
                return self._hang_transaction(wanted.name)
            case CommandKind.ABORT_TRANSACTION:
                self._abort_transaction(wanted.name)
                return None
            case CommandKind.SET | CommandKind.UNSET:
                return self._set(wanted)
            case CommandKind.BANDWIDTH:
                return self._set_bandwidth(wanted.node, wanted.amount)
            case CommandKind.ELECT:
                self._elect(wanted.name)
                return None
            case _:
                return self._adjust_group(wanted)

    def undo(self, back: Command) -> None:
        """Carry out an adjustment that undoes one, as soon as there is a controller if it needs one.

        Raises BadUse if it is not possible. A hanging transaction that somebody else has ended is undone.
        """
        if back.kind is CommandKind.ABORT_TRANSACTION:
            topic = back.name.rpartition("-")[0]
            if topic not in self._topics() or not self._hanging.find(*self._led(back.name)):
                return
        if back.kind not in _DECIDED or self._quorum.active():
            self.apply(back)
            return

        def decide() -> None:
            with suppress(BadUse):  # The topic may have been deleted while this waited.
                self.apply(back)

        self._quorum.forward(decide, lambda: None, FORWARD_TIMEOUT_MS * 1000)

    def settings(self) -> LabSettings:
        """Return what is set now. A stopped group has no members."""
        return LabSettings(
            tuple(map(self._producer, self._traffic.producers.values())),
            tuple(map(self._group, self._traffic.groups)),
            tuple(
                LinkSetting(b, broker.in_link.rate, self._initial_bandwidth, broker.latency_us)
                for b, broker in self._brokers.items()
            ),
            tuple(
                self._topic(name, topic)
                for name, topic in self._topics().items()
                if name not in INTERNAL_TOPICS and topic.partitions
            ),
        )

    def _producer(self, producer: SimulatedProducer) -> ProducerSetting:
        spec = producer.spec
        name, rate = spec.client_id, spec.records_per_second
        return ProducerSetting(
            name,
            spec.topic,
            0.0 if producer.is_fenced else self._paused_rates.get(name, rate),
            self._initial_rates.get(name, rate),
            name in self._paused_rates,
            spec.record_bytes,
            spec.acks,
            spec.keys,
            spec.skew,
        )

    def _group(self, name: str) -> GroupSetting:
        spec, inside = self._traffic.groups[name], self._inside(name)
        return GroupSetting(
            name,
            spec.topics,
            len(inside),
            self._initial_members.get(name, spec.members),
            any(member.paused for member in inside),
            spec.records_per_second,
            spec.commit_interval_ms,
        )

    def _topic(self, name: str, topic: TopicImage) -> TopicSetting:
        value = self._configs.min_insync_replicas(name)
        dynamic = self._configs.of_broker(-1)
        initial = self._configs.settings.topic(
            self._initial_configs.get(name, topic.configs), MIN_ISR, dynamic
        )
        return TopicSetting(name, value, int(initial), len(topic.partitions[0].replicas))

    def _topics(self) -> Mapping[str, TopicImage]:
        """Return the topics in the newest metadata that any broker has."""
        return max((broker.image for broker in self._brokers.values()), key=lambda image: image.offset).topics

    def _inside(self, group: str) -> list[AnyMember]:
        members = self._traffic.all_members()[group]
        return [member for member in members if member.phase is not Phase.LEFT]

    def _named_producer(self, name: str) -> SimulatedProducer:
        producer = self._traffic.producers.get(name)
        if producer is None:
            raise BadUse(ErrorKind.PRODUCER_UNKNOWN, name=name, known=tuple(self._traffic.producers))
        if producer.is_fenced:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=name, reason="it is fenced and has stopped")
        return producer

    def _set_rate(self, name: str, rate: float) -> Command:
        producer = self._named_producer(name)
        _check(rate, 0, MOST_RECORDS_PER_SECOND)
        before = self._paused_rates.pop(name, producer.spec.records_per_second)
        producer.set_rate(rate)
        return Command(CommandKind.RATE, name=name, amount=before)

    def _pause_producer(self, name: str, pause: bool) -> Command | None:
        producer = self._named_producer(name)
        if pause == (name in self._paused_rates):
            return None
        if pause:
            self._paused_rates[name] = producer.spec.records_per_second
            producer.set_rate(0.0)
            return Command(CommandKind.RESUME_PRODUCER, name=name)
        producer.set_rate(self._paused_rates.pop(name))
        return Command(CommandKind.PAUSE_PRODUCER, name=name)

    def _take_over(self, name: str) -> None:
        producer = self._named_producer(name)
        if producer.transactions is None:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=name, reason="it does not use transactions")
        _check(len(self._traffic.producers) + 1, 1, MOST_PRODUCERS)
        self._traffic.take_over(name, self._paused_rates.get(name, producer.spec.records_per_second))

    def _led(self, name: str) -> tuple[int, TopicPartition]:
        """Return the leader of the partition `TOPIC-NUMBER`, and the partition. Raises BadUse if it has
        none that answers."""
        topic, _, number = name.rpartition("-")
        topic_image = self._topics().get(topic)
        if topic_image is None or not number.isdecimal() or int(number) >= len(topic_image.partitions):
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=name, reason="there is no such partition")
        leader = topic_image.partitions[int(number)].leader
        if leader not in self._brokers or not self._brokers[leader].node.running:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=name, reason="it has no leader that answers")
        return leader, (topic, int(number))

    def _hang_transaction(self, name: str) -> Command:
        leader, key = self._led(name)
        if key[0] in INTERNAL_TOPICS:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=name, reason="coordinators write it")
        _done(AdminResult(self._hanging.begin(leader, key)), name)
        return Command(CommandKind.ABORT_TRANSACTION, name=name)

    def _abort_transaction(self, name: str) -> None:
        leader, key = self._led(name)
        if not self._hanging.find(leader, key):
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=name, reason="no transaction hangs in it")
        _done(AdminResult(self._hanging.abort(leader, key)), name)

    def _set_bandwidth(self, broker: int, rate: float) -> Command:
        target = self._brokers.get(broker)
        if target is None:
            raise BadUse(ErrorKind.BROKER_UNKNOWN, name=broker, known=tuple(map(str, self._brokers)))
        _check(rate, LEAST_BYTES_PER_SECOND, MOST_BYTES_PER_SECOND)
        before = target.in_link.rate
        for link in (target.in_link, target.out_link):
            link.available(target.kernel.working_us)
            link.rate = round(rate)
        return Command(CommandKind.BANDWIDTH, node=broker, amount=before)

    def _set(self, wanted: Command) -> Command:
        topic, key = wanted.name, wanted.key
        topic_image = self._topics().get(topic)
        before = None if topic_image is None else topic_image.configs.get(key)
        deletes = wanted.kind is CommandKind.UNSET
        operation = Operation.DELETE if deletes else Operation.SET
        change = Alteration(key, operation, None if deletes else wanted.value)
        _done(self._admin.alter_topic(topic, (change,), False, False), topic)
        if before is None:
            return Command(CommandKind.UNSET, name=topic, key=key)
        return Command(CommandKind.SET, name=topic, key=key, value=before)

    def _elect(self, topic: str) -> None:
        topic_image = self._topics().get(topic)
        if topic_image is None:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=topic, reason="there is no such topic")
        keys = [
            (topic, number) for number, partition in enumerate(topic_image.partitions) if partition.leader < 0
        ]
        if not keys:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=topic, reason="every partition has a leader")
        for _, result in self._admin.elect_leaders(keys, unclean=True):
            _done(result, topic)

    def _adjust_group(self, wanted: Command) -> Command | None:
        name = wanted.name
        if name not in self._traffic.groups:
            raise BadUse(ErrorKind.GROUP_UNKNOWN, name=name, known=tuple(self._traffic.groups))
        inside = self._inside(name)
        match wanted.kind:
            case CommandKind.PAUSE | CommandKind.RESUME:
                pause = wanted.kind is CommandKind.PAUSE
                changed = [member for member in inside if member.paused is not pause]
                for member in changed:
                    member.paused = pause
                back = CommandKind.RESUME if pause else CommandKind.PAUSE
                return Command(back, name=name) if changed else None
            case CommandKind.ADD_MEMBER:
                _check(len(inside) + 1, 1, MOST_MEMBERS)
                spec = self._traffic.groups[name]
                self._traffic.add_member(spec).paused = any(member.paused for member in inside)
                return Command(CommandKind.REMOVE_MEMBER, name=name)
            case _:
                if not inside:
                    raise BadUse(ErrorKind.GROUP_WITHOUT_MEMBERS, group=name)
                _end(inside[-1], clean=wanted.kind is CommandKind.REMOVE_MEMBER)
                return Command(CommandKind.ADD_MEMBER, name=name)


def _end(member: AnyMember, clean: bool) -> None:
    if clean:
        member.leave()
    else:
        member.die()


def _check(amount: float, least: float, most: float) -> None:
    if not least <= amount <= most:
        raise BadUse(ErrorKind.AMOUNT_OUT_OF_RANGE, amount=amount, least=least, most=most)


def _done(result: AdminResult, topic: str) -> None:
    if result.error_code is not ErrorCode.NONE:
        reason = result.message or result.error_code.name
        raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=topic, reason=reason)
