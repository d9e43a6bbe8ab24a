"""What can be asked of a cluster over HTTP: a method, a path, what is given, what is answered, and the
description of all of it (OpenAPI 3.1)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from kview import __version__
from kview.errors import BadUse, ErrorKind
from kview.lab.commands import checked, parse
from kview.lab.lines import MAX_LINE_BYTES
from kview.lab.messages import Counters, Requests
from kview.language import commands
from kview.model.lab import Command, LabSettings, Reply, Status
from kview.testing.cluster import PATIENCE_S, Cluster, ClusterError

MOST_WAITED_S = 300.0
"""The longest that a request may wait for something to happen."""


Number = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Named = Annotated[str, Meta(min_length=1, max_length=249)]


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing needs to be said."""


class Patience(Struct, frozen=True, forbid_unknown_fields=True):
    """How many seconds to wait at most."""

    within_s: Annotated[float, Meta(ge=0, le=MOST_WAITED_S)] = PATIENCE_S


class OtherLeader(Patience, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A partition that is to have another leader than a broker."""

    topic: Named
    other_than: int
    partition: Number = 0


class Filter(Struct, frozen=True, forbid_unknown_fields=True):
    """Requests of an API such as Produce, or about a topic; "" is any."""

    api: str = ""
    topic: str = ""


class NewTopic(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to create. Without a replication factor it has three replicas if there are that many brokers,
    with an assignment those that it lists by partition. If it is unique, its name gets a number that no other
    topic has. POST /heal deletes it."""

    name: Named = "topic"
    partitions: Count = 1
    replication_factor: Annotated[int, Meta(ge=1, le=32_767)] | None = None
    assignment: Sequence[Sequence[Number]] = ()
    settings: Mapping[str, str] = {}
    unique: bool = False


class Name(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a topic or a group."""

    name: Named


class Leader(Struct, frozen=True):
    """The id of the broker that leads a partition."""

    leader: int


class PartitionState(Struct, frozen=True):
    """Who leads a partition, −1 if nobody does, its replicas, and those in sync."""

    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]


class Partitions(Struct, frozen=True):
    """A topic's partitions in order."""

    partitions: Sequence[PartitionState]


class Outcome(Struct, frozen=True):
    """A command that was carried out, in words and as `kview` itself has it, with the command that undoes it
    and the faults that are in force now."""

    said: str
    reply: Reply


class Failure(Struct, frozen=True):
    """What is wrong, as a sentence."""

    error: str


class BrokerAt(Struct, frozen=True):
    """A broker, and the HOST:PORT at which clients find it."""

    id: int
    address: str


class User(Struct, frozen=True):
    """What clients of Java and of librdkafka are set to in order to be a user, bootstrap servers included."""

    client_properties: Mapping[str, str]
    librdkafka_conf: Mapping[str, str]


class Bootstrap(Struct, frozen=True):
    """How clients connect. Without logins and certificates there are no `users`; with them, the settings
    outside of `users` are those of admin, who may do everything."""

    bootstrap_servers: str
    brokers: Sequence[BrokerAt]
    client_properties: Mapping[str, str]
    librdkafka_conf: Mapping[str, str]
    users: Mapping[str, User]


class Route(NamedTuple):
    """A request: `takes` is given by the query of a GET, by the path, or by the body, as JSON."""

    method: str
    path: str
    about: str
    takes: Any
    gives: Any
    call: Callable[[Cluster, Any], Any]


def command_of(body: bytes) -> Command:
    """Return the command in a body: JSON, or a line as `kview serve` takes it. Raises BadUse, and ValueError
    if it is neither."""
    if len(body) > MAX_LINE_BYTES:
        raise BadUse(ErrorKind.LINE_TOO_LONG, most_bytes=MAX_LINE_BYTES)
    text = body.strip()
    if text.startswith(b"{"):
        return checked(msgspec.json.decode(text, type=Command))
    return parse(text.decode())


def _carried_out(kafka: Cluster, command: Command) -> Outcome:
    reply = kafka.carry_out(command)
    assert reply.done is not None
    return Outcome(commands.done(reply.done), reply)


def _bootstrap(kafka: Cluster, _: Nothing) -> Bootstrap:
    return Bootstrap(
        kafka.bootstrap_servers,
        [BrokerAt(broker, kafka.bootstrap(broker)) for broker in kafka.brokers],
        kafka.client_properties,
        kafka.librdkafka_conf,
        {name: User(each.client_properties, each.librdkafka_conf) for name, each in kafka.users.items()},
    )


def _new_topic(kafka: Cluster, given: NewTopic) -> Name:
    sort = given.partitions, given.replication_factor
    if given.unique:
        return Name(kafka.new_topic(given.name, *sort, assignment=given.assignment, settings=given.settings))
    kafka.create_topic(given.name, *sort, assignment=given.assignment, settings=given.settings)
    return Name(given.name)


def _partitions(kafka: Cluster, given: Name) -> Partitions:
    rows = kafka.partitions(given.name)
    if not rows:
        raise ClusterError(f"there is no topic {given.name!r}")
    return Partitions([PartitionState(*row) for row in rows])


def _waited(kafka: Cluster, given: Patience) -> Status:
    kafka.wait_full_isr(given.within_s)
    return kafka.status()


def _healed(kafka: Cluster, given: Patience) -> Status:
    kafka.heal(given.within_s)
    return kafka.status()


def _other_leader(kafka: Cluster, given: OtherLeader) -> Leader:
    return Leader(
        kafka.wait_leader(given.topic, given.partition, other_than=given.other_than, within_s=given.within_s)
    )


def _forget(kafka: Cluster, _: Nothing) -> Nothing:
    kafka.forget_requests()
    return Nothing()


def _quit(kafka: Cluster, _: Nothing) -> Nothing:
    kafka.close()
    return Nothing()


ROUTES = (
    Route("GET", "/", "This description.", Nothing, dict[str, Any], lambda kafka, _: openapi()),
    Route("GET", "/bootstrap", "Where the brokers are, and what clients are set to.", Nothing, Bootstrap,
          _bootstrap),
    Route("POST", "/commands", "Carry out a command: a line as `kview serve --help` lists them, such as"
          " `crash 1` or `fail Produce NOT_LEADER_OR_FOLLOWER times=2`, or the same as JSON.",
          Command, Outcome, _carried_out),
    Route("GET", "/status", "The cluster in a few numbers, and the faults in force.", Nothing, Status,
          lambda kafka, _: kafka.status()),
    Route("GET", "/counters", "The records appended, acknowledged and consumed.", Nothing, Counters,
          lambda kafka, _: kafka.counters()),
    Route("GET", "/settings", "What is set and can be adjusted.", Nothing, LabSettings,
          lambda kafka, _: kafka.settings()),
    Route("GET", "/requests", "What clients have sent since the cluster was healed.", Filter, Requests,
          lambda kafka, given: Requests(tuple(kafka.requests(given.api, given.topic)))),
    Route("DELETE", "/requests", "Forget what clients have sent.", Nothing, Nothing, _forget),
    Route("POST", "/topics", "Create a topic, and wait until every broker that runs knows it.", NewTopic,
          Name, _new_topic),
    Route("GET", "/topics/{name}", "Who leads the partitions of a topic, their replicas and who is in sync.",
          Name, Partitions, _partitions),
    Route("POST", "/groups", "Make a name for a group that no other test has. POST /heal deletes the group.",
          Name, Name, lambda kafka, given: Name(kafka.new_group(given.name))),
    Route("POST", "/wait/full-isr", "Wait until no fault is in force, every broker is unfenced and every"
          " replica in sync.", Patience, Status, _waited),
    Route("POST", "/wait/leader", "Wait until a partition has another leader.", OtherLeader, Leader,
          _other_leader),
    Route("POST", "/heal", "End all faults and rules, wait until the cluster has recovered, delete what was"
          " made here, and forget the requests.", Patience, Status, _healed),
    Route("POST", "/quit", "End the cluster.", Nothing, Nothing, _quit),
)  # fmt: skip
"""Commands have one entry, because they are known elsewhere."""


def openapi() -> dict[str, Any]:
    """Return the description."""
    types = [Failure, *(kind for route in ROUTES for kind in (route.takes, route.gives))]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    failure = schemas[0]
    paths: dict[str, dict[str, Any]] = {}
    for route, takes, gives in zip(ROUTES, schemas[1::2], schemas[2::2], strict=True):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, takes, gives, failure)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kview serve --http",
            "version": __version__,
            "description": "A simulated Kafka cluster, for tests in any language.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


REFUSALS = {
    "400": "What was given is not understood.",
    "401": "The token is missing or wrong.",
    "403": "It comes from a page in a browser, or is meant for another host.",
    "404": "There is no such path.",
    "405": "The path takes other methods.",
    "409": "The cluster refuses.",
    "411": "The body comes without its length.",
    "413": "The body is too long.",
    "503": "Too many requests wait already.",
    "504": "What was waited for has not happened.",
}


def _operation(route: Route, takes: Any, gives: Any, failure: Any) -> dict[str, Any]:
    def content(schema: Any) -> dict[str, Any]:
        return {"application/json": {"schema": schema}}

    operation: dict[str, Any] = {
        "summary": route.about,
        "responses": {
            "200": {"description": "Done.", "content": content(gives)},
            **{code: {"description": text, "content": content(failure)} for code, text in REFUSALS.items()},
        },
    }
    fields = () if route.takes is Command else msgspec.structs.fields(route.takes)
    if route.method == "GET":
        operation["parameters"] = [
            {
                "name": field.name,
                "in": "path" if f"{{{field.name}}}" in route.path else "query",
                "required": field.required,
                "schema": {"type": "string"},
            }
            for field in fields
        ]
    elif route.takes is not Nothing:
        body = content(takes)
        if route.takes is Command:
            body["text/plain"] = {"schema": {"type": "string"}}
        required = route.takes is Command or any(field.required for field in fields)
        operation["requestBody"] = {"required": required, "content": body}
    return operation
