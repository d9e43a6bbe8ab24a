"""Errors on demand: what happens to requests that match a rule, and a log of the requests that came."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kview.errors import BadUse, ErrorKind
from kview.model.lab import OWN_CLIENT_ID, Command, CommandKind, LoggedBatch, LoggedRequest
from kview.serve.call import Api, Call, Handler, Steps
from kview.serve.error_answers import (
    BY_TOPIC,
    PARTITIONED,
    READS,
    Place,
    can_fail,
    overwrite,
    places,
    put_in,
    take_out,
    whole,
)
from kview.simulate.cluster import Cluster
from kview.simulate.nodes import ProcessState
from kview.simulate.records import HEADER

MOST_LOGGED, MOST_LOGGED_BYTES = 20_000, 4 << 20
"""So many requests are kept, the newest; all of them fit into one message."""

MOST_RULES = 1_000

MOST_PLACES = 100
"""So many partitions of a request are logged."""

LONGEST_NAME = 249
"""Longer names are cut in the log. No topic has one."""

FIXED_BYTES, BATCH_BYTES = 200, 120
"""How large a logged request is, besides its names, and a batch."""

AGAIN_US = 100_000
"""How much later a request is tried again that was to be handled while its broker hung."""

HIGHEST_ERROR = 32_767
PRODUCE, FETCH, ADD_PARTITIONS = 0, 1, 24


class OnDemand:
    """The rules of a cluster, of which the first that matches a request counts, and the log of requests."""

    def __init__(self, cluster: Cluster, apis: dict[int, Api]) -> None:
        self._cluster = cluster
        self._apis = {name_of(api): api for api in apis.values()}
        self._random = cluster.kernel.random("rules")
        self._rules: list[Command] = []
        self._left: list[int] = []
        """How many more requests each rule is for; −1 for all."""
        self._log: deque[tuple[LoggedRequest, int]] | None = None
        """Requests and their sizes. None until somebody reads it, so that it costs nothing before."""
        self._log_bytes = 0
        self._number = 0

    @property
    def active(self) -> bool:
        """Whether there is a rule, or somebody reads the log."""
        return bool(self._rules) or self._log is not None

    def add(self, rule: Command) -> None:
        """Add a rule, for requests from now on. Raises BadUse."""
        api = self._apis.get(rule.name)
        if api is None:
            raise BadUse(ErrorKind.API_UNKNOWN, name=rule.name, known=tuple(self._apis))
        if rule.kind is CommandKind.FAIL:
            if not can_fail(api.key, api.versions[1]):
                raise BadUse(ErrorKind.API_WITHOUT_ERRORS, name=rule.name)
            if not -1 <= int(rule.key) <= HIGHEST_ERROR or rule.key == "0":
                raise BadUse(ErrorKind.NOT_AN_ERROR, text=rule.key, nearest="NOT_LEADER_OR_FOLLOWER")
        if rule.where.topic and api.key not in BY_TOPIC:
            raise BadUse(ErrorKind.API_WITHOUT_TOPICS, name=rule.name)
        if len(self._rules) == MOST_RULES:
            raise BadUse(ErrorKind.TOO_MANY_RULES, most=MOST_RULES)
        self._rules.append(rule)
        self._left.append(rule.where.times)

    def clear(self) -> int:
        """Forget all rules, and return how many there were."""
        had, self._rules, self._left = len(self._rules), [], []
        return had

    def read(self) -> tuple[LoggedRequest, ...]:
        """Return the requests that are kept, and keep those that come from now on."""
        if self._log is None:
            self._log = deque()
        return tuple(request for request, _ in self._log)

    def forget(self) -> None:
        """Forget the requests that are kept."""
        if self._log is not None:
            self._log.clear()
        self._log_bytes = 0

    def handler(self, call: Call) -> Handler | None:
        """Log a request. Return what handles it in place of its API, if a rule is about it. Those with which
        kview itself asks are left alone."""
        if call.client_id == OWN_CLIENT_ID:
            return None
        name, where = name_of(call.api), list(places(call.api.key, call.request))
        rule = self._met(name, call, where)
        if self._log is not None:
            self._keep(self._log, self._logged(name, call, where, rule))
        return None if rule is None else self._handler(call, rule)

    def _keep(self, log: "deque[tuple[LoggedRequest, int]]", request: LoggedRequest) -> None:
        names = sum(map(len, request.partitions)) + 6 * len(request.client_id) + 6 * len(request.group)
        size = FIXED_BYTES + names + BATCH_BYTES * len(request.batches)
        log.append((request, size))
        self._log_bytes += size
        while len(log) > MOST_LOGGED or self._log_bytes > MOST_LOGGED_BYTES:
            self._log_bytes -= log.popleft()[1]

    def _met(self, name: str, call: Call, where: list[Place]) -> Command | None:
        for number, rule in enumerate(self._rules):
            if not self._left[number] or rule.name != name or rule.where.broker not in (-1, call.broker):
                continue
            if rule.kind is CommandKind.FAIL and not can_fail(call.api.key, call.version):
                continue
            if call.api.key in PARTITIONED:
                about = not rule.where.topic or any(self._is_about(rule, call, place) for place in where)
            else:
                about = not rule.where.topic or rule.where.topic in _topics(call.request)
            if not about:
                continue
            if rule.where.percent >= 100 or self._random.random() * 100 < rule.where.percent:
                self._left[number] -= self._left[number] > 0
                return rule
        return None

    def _is_about(self, rule: Command, call: Call, place: Place) -> bool:
        wanted = rule.where
        return (not wanted.topic or topic_of(call, place) == wanted.topic) and wanted.partition in (
            -1,
            place.partition,
        )

    def _handler(self, call: Call, rule: Command) -> Handler:
        match rule.kind:
            case CommandKind.DELAY:
                return lambda call: self._later(call, round(rule.amount * 1000))
            case CommandKind.DROP if rule.key == "before":
                return Call.hang_up
            case CommandKind.DROP:
                return _altering(lambda body: None)
        error, api, version = int(rule.key), call.api.key, call.version
        if api in PARTITIONED and (api != ADD_PARTITIONS or version <= 3):
            taken = take_out(api, call.request, lambda place: self._is_about(rule, call, place))
            if api == FETCH:  # Kafka waits for nothing where a partition has an error.
                call.request.max_wait_ms = 0
            return _altering(lambda body: put_in(api, version, body, taken, error))
        if api in READS:
            return _altering(lambda body: overwrite(api, version, body, rule.where.topic, error))
        return lambda call: call.answer(whole(api, version, call.request, error))

    def _later(self, call: Call, us: int) -> None:
        def handle() -> None:
            state = self._cluster.nodes.state(call.broker)
            if state is ProcessState.HUNG:
                self._later(call, AGAIN_US)
            elif state is ProcessState.RUNNING:
                for _ in call.api.handle(call) or ():
                    pass  # also if the client has gone: a broker works off what it has read

        self._cluster.kernel.after(us, call.later(handle))

    def _logged(self, name: str, call: Call, where: list[Place], rule: Command | None) -> LoggedRequest:
        return LoggedRequest(
            number=self._number,
            at_ms=self._cluster.kernel.now_us // 1000,
            api=name,
            version=call.version,
            broker=call.broker,
            client_id=call.client_id[:LONGEST_NAME],
            partitions=tuple(
                f"{topic_of(call, p)[:LONGEST_NAME]}-{p.partition}" for p in where[:MOST_PLACES]
            ),
            group=str(getattr(call.request, "group_id", "") or "")[:LONGEST_NAME],
            batches=tuple(_batches(call)) if call.api.key == PRODUCE else (),
            rule="" if rule is None else rule.kind.value,
        )


def name_of(api: Api) -> str:
    """Return an API's name as Kafka's: `Produce`."""
    name: str = api.request.__name__
    return name.removesuffix("Request")


def _topics(request: Any) -> set[str]:
    """Return the topics that a request of Metadata or OffsetFetch names."""
    entries = list(getattr(request, "topics", None) or ())
    for group in getattr(request, "groups", None) or ():
        entries += getattr(group, "topics", None) or ()
    return {str(getattr(entry, "name", None) or "") for entry in entries}


def topic_of(call: Call, place: Place) -> str:
    """Return a partition's topic, by its id if the request has no name."""
    name = getattr(place.entry, "name", None) or getattr(place.entry, "topic", None)
    topic_id = getattr(place.entry, "topic_id", None)
    if name or topic_id is None:
        return str(name or "")
    image = call.image.topic_by_id(topic_id.bytes)
    return "" if image is None else image.name


class _Altered(Call):
    """A call whose answer is altered on its way out, or never goes out."""

    __slots__ = ("_alter",)

    def __init__(self, call: Call, alter: Callable[[bytes], bytes | None]) -> None:
        of = call._connection, call.api, call._header, call.request, call.size
        super().__init__(call.wire, call.broker, *of)
        self._alter = alter

    def answer_nothing(self) -> None:
        """Close the connection, which is how Kafka reports an error of a request that has no response."""
        self.hang_up()

    def _send(self, body: Sequence[bytes | bytearray]) -> None:
        altered = self._alter(b"".join(body))
        if altered is None:
            self.hang_up()
        else:
            super()._send((altered,))


def _altering(alter: Callable[[bytes], bytes | None]) -> Handler:
    def handle(call: Call) -> Steps | None:
        return call.api.handle(_Altered(call, alter))

    return handle


def _batches(call: Call) -> Iterator[LoggedBatch]:
    for place in list(places(PRODUCE, call.request))[:MOST_PLACES]:
        data = next(row for row in place.entry.partition_data if row.index == place.partition)
        records = data.records or b""
        if len(records) >= HEADER.size:
            *_, crc, _, _, _, _, producer_id, epoch, sequence, count = HEADER.unpack_from(records)
            yield LoggedBatch(
                topic_of(call, place), place.partition, producer_id, epoch, sequence, count, crc
            )
