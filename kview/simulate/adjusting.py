"""What can be adjusted in a running cluster: rates of producers, members of groups, links, settings of
topics."""

from collections.abc import Mapping

from kview.errors import BadUse, ErrorKind
from kview.model.adjustments import Adjustment, AdjustmentKind
from kview.simulate.alterations import Alteration, Operation
from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.requests.admin import Admin
from kview.simulate.results import AdminResult
from kview.simulate.traffic.member import Phase, SimulatedMember
from kview.simulate.traffic.traffic import Traffic

MOST_RECORDS_PER_SECOND = 1_000_000
LEAST_BYTES_PER_SECOND = 1_000
MOST_BYTES_PER_SECOND = 10_000_000_000
MOST_MEMBERS = 100
"""Limits of what can be asked for: more would test the machine, not a cluster."""


class Adjustments:
    """Carries out adjustments."""

    def __init__(self, brokers: Mapping[int, Broker], admin: Admin, traffic: Traffic) -> None:
        self._brokers = brokers
        self._admin = admin
        self._traffic = traffic

    def apply(self, wanted: Adjustment) -> None:
        """Carry out an adjustment. Raises BadUse if that is not possible."""
        match wanted.kind:
            case AdjustmentKind.RATE:
                self._set_rate(wanted.name, wanted.amount)
            case AdjustmentKind.SET:
                self._set(wanted.name, wanted.key, wanted.value)
            case AdjustmentKind.BANDWIDTH:
                self._set_bandwidth(wanted.broker, wanted.amount)
            case AdjustmentKind.ELECT:
                self._elect(wanted.name)
            case _:
                self._adjust_group(wanted)

    def _set_rate(self, name: str, rate: float) -> None:
        producer = self._traffic.producers.get(name)
        if producer is None:
            raise BadUse(ErrorKind.PRODUCER_UNKNOWN, name=name, known=tuple(self._traffic.producers))
        _check(rate, 0, MOST_RECORDS_PER_SECOND)
        producer.set_rate(rate)

    def _set_bandwidth(self, broker: int, rate: float) -> None:
        found = self._brokers.get(broker)
        if found is None:
            raise BadUse(ErrorKind.BROKER_UNKNOWN, name=broker, known=tuple(map(str, self._brokers)))
        _check(rate, LEAST_BYTES_PER_SECOND, MOST_BYTES_PER_SECOND)
        for link in (found.in_link, found.out_link):
            link.available(found.kernel.now_us)
            link.rate = round(rate)

    def _set(self, topic: str, key: str, value: str) -> None:
        _done(self._admin.alter_topic(topic, (Alteration(key, Operation.SET, value),), False, False), topic)

    def _elect(self, topic: str) -> None:
        image = max((broker.image for broker in self._brokers.values()), key=lambda image: image.offset)
        found = image.topics.get(topic)
        if found is None:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=topic, reason="there is no such topic")
        keys = [(topic, number) for number, one in enumerate(found.partitions) if one.leader < 0]
        if not keys:
            raise BadUse(ErrorKind.ADJUSTMENT_REFUSED, topic=topic, reason="every partition has a leader")
        for _, result in self._admin.elect_leaders(keys, unclean=True):
            _done(result, topic)

    def _adjust_group(self, wanted: Adjustment) -> None:
        members = self._traffic.members.get(wanted.name)
        if members is None:
            raise BadUse(ErrorKind.GROUP_UNKNOWN, name=wanted.name, known=tuple(self._traffic.members))
        inside = [member for member in members if member.phase is not Phase.LEFT]
        match wanted.kind:
            case AdjustmentKind.PAUSE | AdjustmentKind.RESUME:
                for member in inside:
                    member.paused = wanted.kind is AdjustmentKind.PAUSE
            case AdjustmentKind.ADD_MEMBER:
                _check(len(inside) + 1, 1, MOST_MEMBERS)
                spec = self._traffic.groups[wanted.name]
                self._traffic.add_member(spec).paused = any(member.paused for member in inside)
            case _:
                if not inside:
                    raise BadUse(ErrorKind.GROUP_WITHOUT_MEMBERS, group=wanted.name)
                _end(inside[-1], clean=wanted.kind is AdjustmentKind.REMOVE_MEMBER)


def _end(member: SimulatedMember, clean: bool) -> None:
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
