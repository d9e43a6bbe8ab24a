"""`kview records`: print records of a topic, or look for some."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kview.cli.targets import registry_option, target_of, target_options
from kview.cli.values import ByteSize

if TYPE_CHECKING:
    from kview.model.search import Begin
    from kview.model.where import Where
    from kview.run.records import RecordsOptions

DEFAULT_LAST = 10
DEFAULT_BYTES = "1g"
DEFAULT_RATE = "200m"
FOLLOW_RATE = "1m"
"""The same while a topic is followed."""
MOST_FOLLOW_RATE = "32m"
FOLLOWED = "1,000"
"""Records a second. These are the limits of kview.derive.following."""
_NOT_FOLLOWED = ("last", "from_ms", "until_ms", "place", "partitions")
"""Flags that say where to begin or end, which is the end of the topic with --follow."""
_LONG_MAX = 2**63 - 1
_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,19})")


def _where(ctx: click.Context, param: click.Parameter, given: str | None) -> "Where | None":
    """Return the filter. Fails with a usage error that says where it is wrong."""
    if given is None:
        return None
    from kview.language.where import problem
    from kview.model.where import Problem
    from kview.where.parse import parse

    where = parse(given)
    if isinstance(where, Problem):
        raise click.BadParameter(problem(where), ctx, param)
    return where


def _topic(ctx: click.Context, param: click.Parameter, given: str) -> str:
    """Return the topic's name. Fails with a usage error if it is not UTF-8, as all names are."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("the name is not UTF-8: check it", ctx, param) from None
    return given


def _time(ctx: click.Context, param: click.Parameter, given: str | None) -> int | None:
    """Return a time in epoch ms. Fails with a usage error."""
    if given is None:
        return None
    from kview.derive.times import FORMS, moment_of

    now_ms = int(time.time() * 1000)
    at_ms = moment_of(given, minus_from_ms=now_ms, plus_from_ms=now_ms, last_ms=now_ms, zone=None)
    if at_ms is None or at_ms < 0:
        raise click.BadParameter(f"{given!r} is not a valid time: write {FORMS}", ctx, param)
    return at_ms


def _place(ctx: click.Context, param: click.Parameter, given: str | None) -> tuple[int, int] | None:
    """Return a partition and an offset. Fails with a usage error."""
    if given is None:
        return None
    match = _PLACE.fullmatch(given)
    if match is None or int(match[2]) > _LONG_MAX:
        raise click.BadParameter(f"{given!r} is not a partition and an offset: write 3:1204117", ctx, param)
    return int(match[1]), int(match[2])


@click.command(context_settings={"max_content_width": 100})
@target_options
@click.argument("topic", callback=_topic)
@click.option(
    "--where",
    callback=_where,
    metavar="FILTER",
    help="Print only records that the filter describes; see below.",
)
@click.option(
    "--last",
    type=click.IntRange(1, _LONG_MAX),
    metavar="N",
    help=f"Read the last N offsets of each partition.  [default without a filter: {DEFAULT_LAST}]",
)
@click.option(
    "--from",
    "from_ms",
    callback=_time,
    metavar="TIME",
    help="Read records from this time on: 14:05, -1h or 2026-11-27T10:00.",
)
@click.option(
    "--to",
    "until_ms",
    callback=_time,
    metavar="TIME",
    help="Print only records before this time. Later ones are read, too: times may be in any order.",
)
@click.option("--offset", "place", callback=_place, metavar="P:O", help="Read partition P from offset O on.")
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(0, 2**31 - 1),
    multiple=True,
    metavar="P",
    help="Read this partition only. May be repeated.",
)
@click.option(
    "--follow",
    is_flag=True,
    help=f"Print records as they are written to any partition, at most {FOLLOWED} a second, until Ctrl-C."
    " What is passed over is said on standard error.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option(
    "--max-bytes",
    type=ByteSize(),
    default=DEFAULT_BYTES,
    show_default=True,
    metavar="SIZE",
    help="Stop when this many bytes of records have been fetched, such as 500m or 20g.",
)
@click.option(
    "--max-rate",
    type=ByteSize(),
    default=DEFAULT_RATE,
    show_default=True,
    metavar="SIZE",
    help="Fetch at most this many bytes of records a second; with --follow,"
    f" {FOLLOW_RATE} unless you say so, and {MOST_FOLLOW_RATE} at most.",
)
@click.option(
    "--uncommitted", is_flag=True, help="Also read records of transactions that are open or were aborted."
)
@click.option(
    "--format",
    "format",
    type=click.Choice(["text", "json", "hex"]),
    default="text",
    show_default=True,
    help="Print a line for each record: text, in which what is long ends with …, a JSON"
    " document (see `kview schema`), or keys and values in hex.",
)
@registry_option
@click.option("--ascii", "ascii_only", is_flag=True, help="Print ASCII characters only.")
@click.pass_context
def records(
    ctx: click.Context,
    /,
    target: str,
    command_config: Path | None,
    maps: tuple[str, ...],
    registry_url: str,
    **flags: Any,
) -> None:
    """Print records of a topic, or look for some.

    kview joins no group and commits nothing. Records come partition by partition, in the order of their
    offsets. What could not be read or decoded is said on standard error.

    \b
    A filter compares fields, and a word alone is looked for anywhere:
      value.customer.id = 42              numbers, true, null, text
      value.lines[].sku = "A 1"           in any item of an array
      key = order-17                      its own partition is read first
      headers.trace exists                also: contains TEXT
      value ~ /time.?out/                 a regular expression (RE2)
      timestamp >= 2026-11-27T10:00       also: offset partition size
      FAILED and not (key = a or key = b)

    What a profile masks is not printed in any format, and filters cannot look at it.

    A field that is missing is not equal to anything. Keys and values are fields if they are JSON or if their
    schema is known; whatever cannot be decoded is still searched as text (or 0x00ff), and counted.

    \b
    Exit codes:
      0   all that was asked for was read, whether something was found or not
      1   not all was read, or not all could be decoded: standard error says what
      2   usage error
      3   the cluster could not be reached
    """
    from kview.errors import BadUse, ErrorKind
    from kview.language.notices import text as words
    from kview.run.observing import ConnectedSource
    from kview.run.records import print_records

    options = _options(ctx, flags)
    shown = target_of(target, command_config, maps, registry_url=registry_url)
    if shown.profile is not None and shown.profile.no_records:
        raise BadUse(ErrorKind.RECORDS_SWITCHED_OFF, name=shown.name)
    for notice in shown.unused_properties():
        click.echo(f"kview: {words(notice)}", err=True)
    source = ConnectedSource(shown.servers, 1.0, shown.security, shown.security_now)
    ctx.exit(print_records(source, options))


def _options(ctx: click.Context, flags: dict[str, Any]) -> "RecordsOptions":
    from kview.model.inspection import Isolation
    from kview.model.units import UNKNOWN
    from kview.run.records import RecordFormat, RecordsOptions

    rate = flags["max_rate"]
    if flags["follow"]:
        if any(flags[name] for name in _NOT_FOLLOWED):
            raise click.UsageError(
                "--follow begins at the end of all partitions: leave out --last, --from, --to, --offset and"
                " --partition",
                ctx,
            )
        if ctx.get_parameter_source("max_bytes") is not ParameterSource.DEFAULT:
            raise click.UsageError(
                "--max-bytes is for what was written before: leave it out with --follow", ctx
            )
        if ctx.get_parameter_source("max_rate") is ParameterSource.DEFAULT:
            rate = ByteSize().convert(FOLLOW_RATE, None, ctx)
    begin, partitions = _begin(flags), flags["partitions"]
    if flags["place"] is not None:
        if partitions:
            raise click.UsageError("--offset names a partition itself: leave out --partition", ctx)
        partitions = (flags["place"][0],)
    until_ms = flags["until_ms"]
    return RecordsOptions(
        topic=flags["topic"],
        partitions=tuple(dict.fromkeys(partitions)),
        begin=begin,
        until_ms=UNKNOWN if until_ms is None else until_ms,
        where=flags["where"],
        isolation=Isolation.READ_UNCOMMITTED if flags["uncommitted"] else Isolation.READ_COMMITTED,
        most=flags["limit"] or 0,
        most_bytes=flags["max_bytes"],
        bytes_per_second=rate,
        follow=flags["follow"],
        format=RecordFormat(flags["format"]),
        ascii_only=flags["ascii_only"],
    )


def _begin(flags: dict[str, Any]) -> "Begin":
    """Return from where on to read. Fails with a usage error if several flags say it."""
    from kview.model.search import Begin, BeginKind

    given = [name for name in ("last", "from_ms", "place") if flags[name] is not None]
    if len(given) > 1:
        raise click.UsageError("use one of --last, --from and --offset")
    match given:
        case ["last"]:
            return Begin(BeginKind.LAST, flags["last"])
        case ["from_ms"]:
            return Begin(BeginKind.TIME, flags["from_ms"])
        case ["place"]:
            return Begin(BeginKind.OFFSET, flags["place"][1])
    if flags["where"] is None and flags["until_ms"] is None and flags["limit"] is None:
        return Begin(BeginKind.LAST, DEFAULT_LAST)
    return Begin()
