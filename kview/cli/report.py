"""`kview report`: the figures of recordings, made by Spark."""

import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from kview.cli.values import Amount
from kview.errors import BadUse, ErrorKind, KviewError

_MOST_THRESHOLD_S = 366 * 86_400
"""The longest lag that can be asked about: a year."""

_MOST_PRICE = 1e9
"""The highest price of 1 GB. Yen have no cents, but nothing costs more."""


@click.command()
@click.argument("recordings", metavar="RECORDING…", nargs=-1, required=True)
@click.option(
    "--since", metavar="TIME", help="Start of the period: 14:05, 14:05:30, -5m, +30s or 2026-03-01T14:05."
)
@click.option("--until", metavar="TIME", help="End of the period, in the same forms.")
@click.option(
    "--against",
    nargs=2,
    metavar="TIME TIME",
    help="Compare with the period from the first to the second time.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="PATTERN",
    help="Only topics that match, such as 'pay*'. May be repeated.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="PATTERN",
    help="Only groups that match, such as 'pay*'. May be repeated.",
)
@click.option(
    "--threshold",
    type=Amount(_MOST_THRESHOLD_S),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Report how long each group was further behind than this.",
)
@click.option(
    "--price",
    type=Amount(_MOST_PRICE),
    metavar="AMOUNT",
    help="The price of 1 GB (10⁹ bytes) copied between racks; adds a cost column.",
)
@click.option(
    "--master",
    default="",
    metavar="URL",
    help="The Spark master: local[N] (default), spark://HOST:PORT, yarn or k8s://URL.",
)
@click.option(
    "--worker-python",
    metavar="PATH",
    help="The Python of a Spark cluster's workers, which needs numpy and pyarrow.  [default: python3]",
)
@click.option(
    "--packages",
    metavar="NAMES",
    help="Jars for Spark to download, as GROUP:NAME:VERSION with commas in between.",
)
@click.option(
    "--conf", "settings", multiple=True, metavar="NAME=VALUE", help="A Spark setting. May be repeated."
)
@click.option(
    "--heap",
    type=click.IntRange(min=256),
    default=1024,
    show_default=True,
    metavar="MB",
    help="The memory of Spark's driver.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to keep roll-ups, instead of within each recording.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "parquet", "html"]),
    default="table",
    show_default=True,
    help="table: text and plots for people; html: one self-contained page; json, csv and parquet have every"
    " row and column.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The file to write, or for csv and parquet the folder.  [default: standard output]",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Print ASCII characters only.")
@click.pass_context
def report(ctx: click.Context, /, recordings: tuple[str, ...], **flags: Any) -> None:
    """Report on recordings: throughput, availability, lag, incidents and growth.

    RECORDING is a folder, a pattern such as 'fleet/*/2026-03-*', or the name under which a recording was
    kept. A folder stands for all recordings in it. A recording is read once; the roll-ups are kept in its
    folder, so that the next report is quick. Periods are whole minutes.

    Without --master, Spark works on this machine, with a Python process per core that reads the recording.

    RECORDING may also be in a store: s3://BUCKET/FOLDER, gs://… or hdfs://…, with the same credentials as for
    --record-upload. The roll-ups then go to the folder given with --cache.

    With --master spark://HOST:PORT, the work is done by the workers of a Spark cluster. They must see the
    recording and the folder of its roll-ups (--cache) under the same paths, and their Python
    (--worker-python) needs numpy and pyarrow and the minor version of this one; kview sends them the rest. To
    ask for less memory on each machine, add --conf spark.executor.memory=512m. Recordings in a store are read
    by the workers themselves, with pyarrow: with the user and the options of the URL, or else with their own
    credentials.

    \b
    On YARN (not tested here):
      export HADOOP_CONF_DIR=/etc/hadoop/conf JAVA_HOME=/usr/lib/jvm/java-17
      kview report hdfs://NAMENODE:8020/recordings --master yarn \\
        --cache /mnt/shared \\
        --conf spark.executor.instances=8 --conf spark.executor.memory=2g
      # /mnt/shared is mounted on this machine and on every node manager

    \b
    On Kubernetes (not tested here):
      kview report s3://BUCKET/recordings --master k8s://https://APISERVER:6443 \\
        --cache /mnt/shared --conf spark.kubernetes.container.image=IMAGE \\
        --conf spark.kubernetes.executor.podTemplateFile=pod.yaml
      # IMAGE is Spark's with numpy and pyarrow; kview runs in a pod, too; pod.yaml mounts /mnt/shared in all
    """
    from kview.language.errors import sentence
    from kview.run import terminal
    from kview.run.report_files import ReportFormat, check_output, write_report
    from kview.run.report_progress import ProgressLine
    from kview.run.reporting import Reporting, SparkChoices

    form, out = ReportFormat(flags["form"]), flags["out"]
    check_output(form, out, sys.stdout.isatty())
    ascii_only = terminal.detect(False, os.environ, sys.stdout.encoding, flags["ascii_only"]).ascii_only
    line = ProgressLine(sys.stderr, ascii_only)
    _check_master(flags["master"])
    reporting = Reporting(
        recordings,
        _question(recordings, flags),
        spark=SparkChoices(
            master=flags["master"],
            worker_python=flags["worker_python"],
            heap_mb=flags["heap"],
            settings=_settings(flags["settings"], flags["packages"]),
        ),
        cache=flags["cache"],
        on_progress=line.show,
    )

    ended_by: list[int] = []
    is_writing = False

    def cancel(number: int, frame: FrameType | None) -> None:
        # The second Ctrl-C ends kview at once. Spark must not be called by a handler that interrupts a call.
        signal.signal(number, signal.SIG_DFL)
        ended_by.append(number)
        if is_writing:
            raise KeyboardInterrupt
        threading.Thread(target=reporting.cancel, name="cancel", daemon=True).start()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, cancel)
    error = KviewError(ErrorKind.REPORT_CANCELLED)
    try:
        result = reporting.make()
        is_writing = True
        if ended_by:
            raise error
        line.end()
        write_report(result, form, out, ascii_only)
    except KeyboardInterrupt:
        pass
    except KviewError as failure:
        if failure.kind is not ErrorKind.REPORT_CANCELLED:
            raise
    else:
        return
    finally:
        line.end()
    print(f"kview: {sentence(error)}", file=sys.stderr)
    ctx.exit(128 + (ended_by[0] if ended_by else signal.SIGINT))


_MASTER = re.compile(
    r"local(\[(\*|[1-9][0-9]{0,3})(,[1-9][0-9]{0,3})?\])?|spark://[^/]+|yarn|k8s://.+", re.IGNORECASE
)


def _check_master(master: str) -> None:
    """Check a master before anything is read. Raises BadUse if Spark could not understand it."""
    if master and not _MASTER.fullmatch(master):
        raise BadUse(ErrorKind.SPARK_MASTER_WRONG, master=master)


def _settings(given: Sequence[str], packages: str | None) -> dict[str, str]:
    settings = {} if packages is None else {"spark.jars.packages": packages}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise BadUse(ErrorKind.SPARK_SETTING_WRONG, text=text)
        settings[name] = value
    return settings


def _question(recordings: Sequence[str], flags: dict[str, Any]) -> Any:
    from kview.pipeline.report import Question

    asked = [flags["since"], flags["until"], *(flags["against"] or ())]
    times = _moments(recordings, asked) if any(text is not None for text in asked) else [None] * len(asked)
    return Question(
        since_ms=times[0],
        until_ms=times[1],
        against=(times[2], times[3]) if flags["against"] else None,
        topics=flags["topics"],
        groups=flags["groups"],
        threshold_ms=round(flags["threshold"] * 1000),
        price_per_gb=float("nan") if flags["price"] is None else flags["price"],
    )


def _moments(recordings: Sequence[str], texts: Sequence[str | None]) -> list[int | None]:
    """Return what the times stand for, counted from the ends of all recordings together.

    They come in pairs, the beginning and the end of a period. Raises BadUse if a period is not one, or if
    nothing was recorded in it, because the report itself would find that out only at its end.
    """
    from kview.derive.times import FORMS, moment_of
    from kview.run.reporting import recordings as folders_of
    from kview.run.reporting import span_ms

    first_ms, last_ms = span_ms(folders_of(recordings))
    moments: list[int | None] = []
    for text in texts:
        at_ms = None
        if text is not None:
            at_ms = moment_of(text, minus_from_ms=last_ms, plus_from_ms=first_ms, last_ms=last_ms, zone=None)
            if at_ms is None or not 0 <= at_ms < _END_MS:
                raise BadUse(ErrorKind.NOT_A_TIME, text=text, forms=FORMS)
        moments.append(at_ms)
    for since_ms, until_ms in zip(moments[::2], moments[1::2], strict=True):
        _check_period(since_ms, until_ms, first_ms, last_ms)
    return moments


def _check_period(since_ms: int | None, until_ms: int | None, first_ms: int, last_ms: int) -> None:
    from kview.language.words import moment

    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        since, until = moment(since_ms, None), moment(until_ms, None)
        raise BadUse(ErrorKind.REPORT_PERIOD_BACKWARDS, since=since, until=until)
    first, last = moment(first_ms, None), moment(last_ms, None)
    # A period is widened to whole minutes.
    if since_ms is not None and since_ms // _MINUTE_MS * _MINUTE_MS > last_ms:
        since = moment(since_ms, None)
        raise BadUse(ErrorKind.REPORT_PERIOD_TOO_LATE, since=since, first=first, last=last)
    if until_ms is not None and -(-until_ms // _MINUTE_MS) * _MINUTE_MS <= first_ms:
        until = moment(until_ms, None)
        raise BadUse(ErrorKind.REPORT_PERIOD_TOO_EARLY, until=until, first=first, last=last)


_MINUTE_MS = 60_000

_END_MS = 250_000_000_000_000
"""Times after the year 9000 cannot be shown."""
