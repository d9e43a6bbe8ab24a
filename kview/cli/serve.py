"""`kview serve`: the simulated cluster without a dashboard, for any client."""

import contextlib
from typing import TYPE_CHECKING, Any

import click

from kview.cli.world_options import world_of, world_options
from kview.errors import KviewError
from kview.lab.ways import WAYS, Way

if TYPE_CHECKING:
    from kview.run.film import Film
    from kview.simulate.cluster import Cluster


@click.command()
@world_options
@click.option(
    "--security",
    type=click.Choice(WAYS, case_sensitive=False),
    metavar="PROTOCOL[:MECHANISM]",
    help="Secure the listeners: sasl_ssl, sasl_plaintext (with :scram-sha-512, :scram-sha-256 or :plain),"
    " ssl, or mtls, for which clients need a certificate. Prints where a client.properties is. With logins or"
    " mtls, ACLs are enforced.",
)
@click.option("--control-fd", type=int, hidden=True)
@click.option("--lesson", hidden=True, default="")
def serve(
    seed: int, port: int | None, control_fd: int | None, lesson: str, security: str | None, **flags: Any
) -> None:
    """Run the simulated cluster until you stop it.

    The first line printed is bootstrap.servers=…, for any Kafka client. Then type commands, one per
    line:

    \b
      crash NODE      stop NODE      hang NODE      slow NODE 200ms
      start NODE      undo           lose-rack RACK crash-controller
      fence-now NODE  advance TIME   advance-all TIME
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
    once; connected members keep their sessions, with advance-all they end, too. elect holds an unclean
    leader election. take-over starts a second instance of a producer with transactions,
    and cannot be undone. hang-transaction opens a transaction that no coordinator knows
    of, and abort-transaction ends it. fail, delay and drop are about
    requests of clients: of the API Produce, Fetch …, and WHERE is all or some of
    times=2,broker=1,topic=orders,partition=0,percent=20. `fail Produce NOT_LEADER_OR_FOLLOWER
    times=2` is an error that passes, `drop Produce after times=1` makes an idempotent producer
    send a batch twice, `delay Fetch 5s broker=1` is a slow broker. undo ends all of it. film keeps
    what happens from then on, ten minutes at most, and record writes it as a recording.
    Each command gets a one-line reply.
    """
    from kview.wire.kafka_package import without_clients

    without_clients()
    from kview.lab.securing import Secured
    from kview.lab.serving import control_socket, report_not_started
    from kview.lab.serving import serve as run

    def film_of(cluster: "Cluster") -> "Film":
        from kview.run.film import Film  # which imports much, for those who want it

        return Film(cluster)

    control = None if control_fd is None else control_socket(control_fd)
    try:
        if lesson:
            from kview.school.demo_worlds import demo_world

            world, seed, past_ms = demo_world(lesson, seed)
            run(world, seed, port, control, film_of, past_ms)
        else:
            with contextlib.ExitStack() as stack:
                secured = None if security is None else stack.enter_context(Secured(Way.of(security)))
                world = world_of(**flags)
                run(
                    secured.world(world) if secured else world, seed, port, control, film_of, security=secured
                )
    except KviewError as error:
        if control is not None:
            report_not_started(control, error)
        raise
