"""The flags of a simulated cluster, shared by `kview --simulate` and `kview serve`."""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from kview.lab.ways import WAYS
from kview.lab.worlds import MAX_BROKERS, world_of
from kview.simulate.releases import KAFKA_4_3, RELEASES
from kview.simulate.world import TRANSACTION_MS_MAX

__all__ = ["WORLD_NAMES", "given_flags", "world_of", "world_options"]

WORLD_NAMES = (
    "brokers",
    "racks",
    "topics",
    "placement",
    "settings",
    "no_traffic",
    "empty",
    "transaction_ms",
    "release",
)
"""The flags that describe a world, as `world_of` takes them."""

Command = TypeVar("Command", bound=Callable[..., Any])


def world_options(command: Command) -> Command:
    """Add the flags to a command, which receives them as keywords for `world_of`, except `seed`,
    `port` and `security`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--brokers",
        type=click.IntRange(1, MAX_BROKERS),
        default=6,
        show_default=True,
        metavar="N",
        help="Number of brokers.",
    ),
    click.option(
        "--racks",
        type=click.IntRange(1, MAX_BROKERS),
        metavar="N",
        help="Number of racks (R1, R2 …); each gets a contiguous block of brokers.  [default: 2]",
    ),
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME:PARTITIONS:REPLICAS[:KEY=VALUE…]",
        help="A topic with a producer of 500 records/s and a group of 3 members."
        " Replaces the default topics. May be repeated.",
    ),
    click.option(
        "--placement",
        type=click.Choice(["teaching", "striped", "rack-aware", "rack-blind"]),
        default="teaching",
        show_default=True,
        help="How replicas are placed. teaching: round-robin over the racks, as in Kafka courses; striped:"
        " KRaft's placer; rack-aware: Kafka's placer before KRaft; rack-blind: round-robin by"
        " id, so that one rack may hold all replicas of a partition.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A broker setting, by Kafka's own name, such as broker.session.timeout.ms=3000."
        " May be repeated.",
    ),
    click.option(
        "--release",
        type=click.Choice(tuple(RELEASES)),
        default=KAFKA_4_3.name,
        show_default=True,
        help="The release of Kafka that brokers are. 3.9 has its own APIs, features (kraft.version 1,"
        " metadata.version 21), settings, defaults and limits. It has classic groups only, unless"
        " --set group.coordinator.rebalance.protocols=classic,consumer; no share or streams groups, no"
        " eligible leader replicas, and transactions as before the second part of KIP-890. Unlike a real 3.9,"
        " it does not take the versions that Kafka 4.0 removed, such as Fetch 0–3 and ListOffsets 0. It"
        " advertises Produce 0–2, as 4.3 does, but does not take them.",
    ),
    click.option(
        "--seed",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Random seed: the same seed gives the same placement and traffic.",
    ),
    click.option(
        "--port", type=int, metavar="PORT", help="Broker i listens on PORT + i.  [default: free ports]"
    ),
    click.option(
        "--security",
        type=click.Choice(WAYS, case_sensitive=False),
        metavar="PROTOCOL[:MECHANISM]",
        help="Secure the listeners: sasl_ssl, sasl_plaintext (with :scram-sha-512, :scram-sha-256 or :plain),"
        " ssl, or mtls, for which clients need a certificate. With logins or mtls, ACLs are enforced.",
    ),
    click.option(
        "--transactions",
        "transaction_ms",
        type=click.IntRange(0, TRANSACTION_MS_MAX),
        default=0,
        metavar="MS",
        help="Producers write in transactions and commit each after MS milliseconds; groups read only what"
        " is committed. Such records take memory, so that the oldest are deleted after some minutes.",
    ),
    click.option("--no-traffic", is_flag=True, help="Do not start simulated producers or consumer groups."),
    click.option("--empty", is_flag=True, help="--no-traffic, and no topics but those of --topic."),
)


def given_flags(ctx: click.Context, without: Collection[str]) -> list[str]:
    """Return the options given on the command line as arguments for the simulated cluster's process.

    Those named in `without`, which that process does not know, are left out.
    """
    arguments: list[str] = []
    for option in ctx.command.params:
        name = option.name or ""
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name in without or not given or not isinstance(option, click.Option):
            continue
        values = ctx.params[name] if option.multiple else [ctx.params[name]]
        for value in values:
            arguments += [option.opts[0]] if value is True else [option.opts[0], str(value)]
    return arguments
