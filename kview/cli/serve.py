"""`kview serve`: the simulated cluster without a dashboard, for any client."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kview.cli.values import LOOPBACK, places, serving_address
from kview.cli.world_options import WORLD_NAMES, world_of, world_options
from kview.errors import BadUse, ErrorKind, KviewError
from kview.lab.ways import Way
from kview.model.address import Place

if TYPE_CHECKING:
    from kview.lab.serving import FaceOf, Plan
    from kview.run.film import Film
    from kview.simulate.cluster import Cluster

TOKEN_VARIABLE = "KVIEW_HTTP_TOKEN"
LEAST_TOKEN = 16
"""The fewest characters of a token."""

CONTAINER = """\
# In a checkout of kview, as Containerfile: docker build -t kview -f Containerfile .
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir /src && rm -rf /src
USER 1000
EXPOSE 9092-9094
ENTRYPOINT ["kview", "serve", "--brokers", "3", "--empty", "--listen", "0.0.0.0:9092"]
CMD ["--advertise", "localhost:9092"]

# For clients on this machine, which connect to localhost:9092; -i takes commands:
docker run --rm -i -p 127.0.0.1:9092-9094:9092-9094 kview
# For clients in other containers, which connect to kafka:9092:
docker network create tests
docker run --rm -d --network tests --name kafka kview --advertise kafka:9092
# For clients on other machines, with logins, whose files are in /tmp/kview here, too:
mkdir -p /tmp/kview && docker run --rm -i -p 9092-9094:9092-9094 --user "$(id -u)" -v /tmp/kview:/tmp/kview \\
    -e TMPDIR=/tmp/kview kview --advertise "$(hostname -f):9092" --security sasl_ssl"""


def _container(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(CONTAINER)
        ctx.exit()


def _http(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.resources import files

        examples = files("kview.testing") / "examples"
        for name in ("curl.sh", "Failover.java", "failover.go", "failover.mjs"):
            click.echo((examples / name).read_text())
        ctx.exit()


def _listening(listen: str | None, port: int | None) -> Place:
    """Return where to listen. Raises BadUse."""
    if listen is None:
        return Place(LOOPBACK, port)
    (place, *others) = places(listen)
    if others:
        raise BadUse(ErrorKind.LISTEN_ONCE, text=listen)
    if port is not None and place.port is not None:
        raise BadUse(ErrorKind.LISTEN_TWICE)
    return Place(place.host, port) if place.port is None else place


def _without_world_flags() -> None:
    """Raise UsageError if a flag describes the cluster that a file describes."""
    ctx = click.get_current_context()
    for option in ctx.command.params:
        given = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name in WORLD_NAMES:
            raise click.UsageError(f"give {option.opts[0]} or --world: the file says what the cluster has.")


def _face_of(plan: "Plan", http: str, token_file: Path | None) -> "FaceOf":
    """Return what serves HTTP. Raises BadUse."""
    from kview.testing.http import face_of

    if token_file is not None:
        token = _token(token_file.read_text(errors="replace"), str(token_file))
    else:
        given = os.environ.get(TOKEN_VARIABLE)
        token = "" if given is None else _token(given, TOKEN_VARIABLE)
    return face_of(plan, serving_address(http), token)


def _token(text: str, source: str) -> str:
    token = text.strip()
    if len(token) < LEAST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise BadUse(ErrorKind.NOT_A_TOKEN, source=source, least=LEAST_TOKEN)
    return token


@click.command()
@world_options
@click.option(
    "--listen",
    metavar="HOST[:PORT]",
    help="Listen on another address than 127.0.0.1: broker i at PORT + i. 0.0.0.0 is every address of this"
    " machine. Anyone who can connect can do everything, unless --security asks for logins.",
)
@click.option(
    "--advertise",
    metavar="HOST[:PORT][,…]",
    help="Where clients are told to connect: one place, from whose PORT on ports are counted up, or one for"
    " each broker. Without PORT, it is the port on which the broker listens. For containers and port"
    " forwarding (see --help-container).",
)
@click.option(
    "--help-container",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_container,
    help="Show a container file, and how to run it.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep topics, records, groups, transactions, ACLs and settings in a folder, and go on from there the"
    " next time, as if all brokers had been shut down. Saved at the end and every 2 s (with thousands of"
    " partitions, every 10 s); after kill -9, what is younger than the last save is lost. Not for simulated"
    " traffic: needs --empty or --no-traffic.",
)
@click.option(
    "--http",
    metavar="[HOST:]PORT",
    help="Take commands and answer questions over HTTP, as JSON, for tests in any language (see --help-http)."
    " Port 0 is a free one. Prints the URL and a token, which each request needs.  [default HOST: 127.0.0.1]",
)
@click.option(
    "--http-token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The token for --http, instead of one that is made. So is the environment variable"
    f" {TOKEN_VARIABLE}.",
)
@click.option(
    "--help-http",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_http,
    help="Show how to use --http from Java, Go, JavaScript and curl.",
)
@click.option(
    "--world",
    "world_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The cluster that is described in a file, as `kview twin --out` writes it, instead of one by flags.",
)
@click.option("--control-fd", type=int, hidden=True)
@click.option("--lesson", hidden=True, default="")
def serve(
    seed: int,
    port: int | None,
    listen: str | None,
    advertise: str | None,
    data: Path | None,
    http: str | None,
    http_token_file: Path | None,
    control_fd: int | None,
    lesson: str,
    security: str | None,
    world_file: Path | None,
    **flags: Any,
) -> None:
    """Run the simulated cluster until you stop it.

    The first line printed is bootstrap.servers=…, for any Kafka client; with --security, the second says
    where a client.properties is. Then type commands, one per line:

    \b
      crash NODE      stop NODE      hang NODE      slow NODE 200ms
      start NODE      undo           lose-rack RACK crash-controller
      fence-now NODE  advance TIME   advance-all TIME   pause   resume
      isolate NODE    cut NODE OTHER cut-one-way NODE OTHER   join NODE OTHER  join-all
      lose-disk BROKER               fill-disk BROKER         slow-disk BROKER 50ms
      repair-disk BROKER
      fail API ERROR WHERE           delay API TIME WHERE     drop API before|after WHERE
      rate PRODUCER RECORDS/S        pause-producer PRODUCER  resume-producer PRODUCER
      pause GROUP     resume GROUP   add-member GROUP         remove-member GROUP
      kill-member GROUP              bandwidth BROKER BYTES/S elect TOPIC
      set TOPIC KEY=VALUE            unset TOPIC KEY          take-over PRODUCER
      hang-transaction TOPIC-NUMBER  abort-transaction TOPIC-NUMBER
      film            record FOLDER  status                   counters       quit

    NODE is a broker (0, 1 …) or a controller (101, 102, 103). cut loses all packets between two
    nodes, cut-one-way those that NODE sends to OTHER, and isolate those between a node and all
    others; clients still reach every node. join and join-all end that. lose-disk and fill-disk
    let a log directory fail: with `--set log.dirs=a,b` a broker goes on without its second one.
    repair-disk replaces it, and starts the broker again. fence-now ends a broker's
    session at once, so that nobody waits for its time-out. advance lets a TIME such as 10m pass at
    once; connected members keep their sessions, with advance-all they end, too. pause without a GROUP
    lets the clock stand: requests are served, but nothing times out, and the first rebalance of a
    group waits (group.initial.rebalance.delay.ms), until resume. elect holds an unclean leader election.
    take-over starts a second instance of a producer with transactions, and cannot be undone.
    hang-transaction opens a transaction that no coordinator knows of, and abort-transaction ends it. fail,
    delay and drop are about requests of clients: of the API Produce, Fetch …, and WHERE is all or some of
    times=2,broker=1,topic=orders,partition=0,percent=20. `fail Produce NOT_LEADER_OR_FOLLOWER
    times=2` is an error that passes, `drop Produce after times=1` makes an idempotent producer
    send a batch twice, `delay Fetch 5s broker=1` is a slow broker. undo ends all of it. film keeps
    what happens from then on, ten minutes at most, and record writes it as a recording.
    Each command gets a one-line reply.
    """
    from kview.lab.securing import Secured
    from kview.lab.serving import Plan, control_socket, report_not_started
    from kview.lab.serving import serve as run
    from kview.serve.server import reserve_ports

    def film_of(cluster: "Cluster") -> "Film":
        from kview.run.film import Film  # which imports much, for those who want it

        return Film(cluster)

    control = None if control_fd is None else control_socket(control_fd)
    try:
        with contextlib.ExitStack() as stack:
            past_ms = 0
            if lesson:
                from kview.school.demo_worlds import demo_world

                world, seed, past_ms = demo_world(lesson, seed)
            elif world_file is not None:
                from kview.lab.twin import world_in

                _without_world_flags()
                world = world_in(world_file)
            else:
                world = world_of(**flags)
            folder = None
            if data is not None:
                from kview.lab.saving import DataFolder

                if world.traffic:
                    raise BadUse(ErrorKind.DATA_WITH_TRAFFIC)
                folder = DataFolder(data, [broker.id for broker in world.brokers])
            ports = reserve_ports(
                len(world.brokers), _listening(listen, port), places(advertise) if advertise else ()
            )
            secured = None
            if security is not None:
                secured = stack.enter_context(Secured(Way.of(security), ports))
                world = secured.world(world)
            plan = Plan(world, seed, ports, past_ms, secured, folder)
            run(plan, control, film_of, None if http is None else _face_of(plan, http, http_token_file))
    except KviewError as error:
        if control is not None:
            report_not_started(control, error)
        raise
