"""Measures reports on large recordings against DuckDB.

    python -m tests.benchmarks.bench_report [--rows 1 10 14 86 100] [--cores 1 2] [--folder DIR]

For each size (millions of rows of partitions, in a recording's own Parquet files; 14 and 86 are four hours
and a day of 1,000 partitions) and number of cores: the time of Spark's context, of rolling up, and of all
figures, and the time in which DuckDB rolls up the same files and answers the same figures from that, with as
many threads. Java has a heap of 1 GB. The roll-ups must be equal row by row, and so must the figures. The
ratio counts rolling up and figures, without the context; that of CPU time is the one to believe on a machine
that is busy with other things. With --folder, the recordings stay there for the next run.
"""

import argparse
import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from kview.derive.windows import OUT_SETTLES_S
from kview.model.report import Report
from kview.model.report_tables import TableName
from kview.model.sums import SUMS
from kview.pipeline.batch_session import BatchSession
from kview.pipeline.kernel.tables import MINUTE_SUMS
from kview.pipeline.report import Question, Stage, report
from tests.benchmarks import duck_sql
from tests.benchmarks.synthetic import START_MS, write_recording

LIMIT = 0.7
HEAP_MB = 1024
DUCK_MB = 4096
"""DuckDB runs out of 1 GB with 100 million rows."""
SECONDS = {1: 1_000, 10: 1_000, 14: 14_400, 86: 86_400, 100: 10_000}
PARTITIONS = {1: 1_000, 10: 10_000, 14: 1_000, 86: 1_000, 100: 10_000}

_DELTAS = """
    select sequence, observed_ms, null::varchar as "group", topic, "partition", internal, leader, leader_rack,
        topic_partitions, began_ms, ended_ms, records_in as records, truncated as fell,
        records_in_gap as in_gap, record_centibytes, replicated, cross_rack, state_ms, offline, silent,
        under_min_isr, under_replicated
    from read_parquet('{folder}/seg-*/partition_deltas.parquet')
    {offsets}"""

_OFFSETS = """
    union all by name
    select sequence, observed_ms, "group", topic, "partition", leader, leader_rack, since_ms as began_ms,
        ended_ms, records_out as records, rewound as fell, records_out_gap as in_gap
    from read_parquet('{folder}/seg-*/offset_deltas.parquet')
    union all by name
    select sequence, ended_ms as observed_ms from read_parquet('{folder}/seg-*/observations.parquet')"""


class Duck:
    """DuckDB at the same work."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._connection = duckdb.connect(config={"threads": threads, "memory_limit": f"{DUCK_MB}MB"})
        self._run(
            f"create view deltas as {_DELTAS.format(folder=folder, offsets=_OFFSETS.format(folder=folder))}"
        )
        self._run(f"create view partition_deltas as {_DELTAS.format(folder=folder, offsets='')}")
        self._folder = folder

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()

    def roll_up(self, tail_s: int) -> None:
        self._run(f"create view pieces as {duck_sql.PIECES}")
        self._run(f"create table seconds as {duck_sql.SECONDS}")
        self._run(f"create table minutes as {duck_sql.minutes(-(-START_MS // 1000), tail_s)}")

    def check_rollups(self, folder: Path) -> None:
        """Check that kept roll-ups are the same rows.

        Batches add up, and a batch ends with single seconds.
        """
        sums = ", ".join(f"sum({name})::bigint" for name in SUMS)
        self._same(
            f"select second, kind, name, {sums}, max(hottest.rate), max((hottest.rate, hottest.topic,"
            " hottest.partition)) filter (hottest is not null), max(topic_partitions)",
            "seconds",
            folder,
        )
        sums = ", ".join(f"sum({name})::bigint" for name in MINUTE_SUMS)
        self._same(
            f'select slot // 60 * 60, topic, "partition", bool_or(internal), {sums}, max(peak)',
            "minutes",
            folder,
        )

    def _same(self, select: str, table: str, folder: Path) -> None:
        kept = f"{select} from read_parquet('{folder}/rollups/batch-*/{table}/*.parquet') group by all"
        ours = f"{select} from {table} group by all"
        for one, other in ((kept, ours), (ours, kept)):
            (count,) = self._run(f"select count(*) from (({one}) except ({other}))")[0]
            assert count == 0, f"{count} rows of {table} differ"

    def figures(self, since_s: int, until_s: int) -> dict[str, list[tuple[Any, ...]]]:
        """Ask for what a report asks for."""
        known = f"second >= {since_s} and second < {until_s}"
        settled = f"second < {until_s - OUT_SETTLES_S}"
        sums = ", ".join(
            f"sum({name}) filter ({settled})" if name == "records_out" else f"sum({name})" for name in SUMS
        )
        states = ("offline", "silent", "under_min_isr", "under_replicated")
        seconds = ", ".join(f"count(*) filter ({name}_ms > 0)" for name in states)
        held = "if(kind = 'topic', topic_partitions, active_ms / 1000)"
        ranks = ", ".join(
            f"max(records_in) filter (place = ceil({until_s - since_s} * {percent} / 100)"
            f" - greatest({until_s - since_s} - total, 0))"
            for percent in (50, 95, 99)
        )
        partition = ", ".join(f"sum({name}) as {name}" for name in MINUTE_SUMS)
        return {
            "sums": self._run(
                f"select kind, name, {sums}, {seconds}, sum(hottest.rate), sum({held}),"
                f" count(*) filter ({held} > 0), max(topic_partitions)"
                f" from seconds where {known} group by all"
            ),
            "percentiles": self._run(
                f"select kind, name, {ranks}, max(records_in), arg_min(second, (-records_in, second)) from ("
                "select *, row_number() over (partition by kind, name order by records_in, second desc)"
                " as place,"
                f" count(*) over (partition by kind, name) as total from seconds where {known}"
                " and kind <> 'group' and records_in > 0) group by all"
            ),
            "hottest": self._run(
                "select kind, name, arg_min(place, (-rates, place)) from (select kind, name,"
                " (hottest.topic, hottest.partition) as place, sum(hottest.rate) as rates from seconds"
                f" where {known} and hottest is not null group by all) group by all"
            ),
            "throughput": self._run(
                "select name, second // 60, sum(records_in), sum(centibytes_in), sum(records_out),"
                f" sum(replicated), sum(cross_rack) from seconds where {known}"
                " and kind in ('topic', 'cluster') group by all"
            ),
            "partitions": self._run(
                f"""with sums as (select topic, "partition", {partition}, max(peak) as peak from minutes
                where slot >= {since_s // 60 * 60} and slot < {until_s} group by all)
                select * from (from sums order by records_in desc limit 200)
                union (from sums qualify row_number() over (partition by topic order by records_in desc) = 1
                    order by records_in desc limit 200)
                union (from sums where under_replicated_ms > 0 order by under_replicated_ms desc limit 200)"""
            ),
            "traffic": self._run(
                "select topic, sum(centibytes_in), sum(replicated_centibytes), sum(cross_rack_centibytes)"
                f" from minutes where slot >= {since_s // 60 * 60} and slot < {until_s} group by all"
            ),
        }


KEYS = {
    "topic": (TableName.TOPICS, "topic"),
    "broker": (TableName.BROKERS, "broker"),
    "rack": (TableName.RACKS, "rack"),
    "group": (TableName.GROUPS, "group"),
}


def check(made: Report, found: dict[str, list[tuple[Any, ...]]]) -> None:
    """Check that both engines say the same."""
    percents = {tuple(row[:2]): row[2:5] for row in found["percentiles"]}
    hottest = {tuple(row[:2]): tuple(row[2]) for row in found["hottest"]}
    for kind, (name, key) in KEYS.items():
        table = made[name]
        theirs = {str(row[1]): row[2:] for row in found["sums"] if row[0] == kind}
        # Some groups read nothing: only facts know them.
        idle = {one for one in table[key] if kind == "group" and one not in theirs}
        assert set(table[key]) - idle == set(theirs) and theirs, f"{kind}: names"
        for at, one in enumerate(table[key].tolist()):
            row = table.row(at)
            if one in idle:
                assert row["records_out"] == 0, f"group {one}: records out"
                continue
            sums = {str(column): theirs[one][place] for place, column in enumerate(SUMS)}
            sums["bytes_in"] = sums["centibytes_in"] // 100
            for column in row.keys() & sums.keys():
                assert row[column] == sums[column], f"{kind} {one}: {column}"
            if kind != "group":
                ranks = tuple(value or 0 for value in percents.get((kind, one), (0, 0, 0)))
                assert (row["in_p50"], row["in_p95"], row["in_p99"]) == ranks, f"{kind} {one}: percentiles"
                place = (row["hottest_topic"], row["hottest_partition"])
                assert place == hottest[kind, one], f"{kind} {one}: hottest"
    partitions = {(row[0], row[1]): row[2] for row in found["partitions"]}
    table = made[TableName.PARTITIONS]
    busiest = sorted(table["records_in"].tolist(), reverse=True)[:200]
    assert busiest == sorted(partitions.values(), reverse=True)[:200], "partitions"
    table = made[TableName.TRAFFIC]
    ours = dict(zip(table["topic"], table["cross_rack_bytes"].tolist(), strict=True))
    assert {row[0]: row[3] // 100 for row in found["traffic"]}.items() <= ours.items(), "traffic"


def tree(pid: int) -> list[int]:
    """Return a process and all that it and its children have started and that still run."""
    with suppress(OSError):
        threads = Path(f"/proc/{pid}/task").iterdir()
        started = [one for thread in threads for one in (thread / "children").read_text().split()]
        return [pid, *(one for child in started for one in tree(int(child)))]
    return []


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of what it has started so far."""
    found = 0
    for one in tree(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
            found += sum(map(int, fields[11:15]))
    return found / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> int:
    """Return the most memory that a process had in use."""
    peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert peak is not None
    return int(peak[1]) // 1024


def measure(folder: Path, cores: int, rows: int, line: str) -> None:
    """Print one row of the table."""
    shutil.rmtree(folder / "rollups", ignore_errors=True)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    began = time.monotonic()
    figures_at = [0.0]

    def on_stage(stage: Stage, done: int, total: int) -> None:
        if stage is Stage.FIGURES and not figures_at[0]:
            figures_at[0] = time.monotonic()

    with BatchSession(f"local[{cores}]", heap_mb=HEAP_MB) as session:
        ready, ready_cpu = time.monotonic(), cpu_s(session.pid) + time.process_time()
        made = report(session.context, [folder], Question(), session.scratch, None, on_stage)
        worker_mb = max(map(peak_mb, tree(session.pid)[1:]), default=0)
        done, done_cpu = time.monotonic(), cpu_s(session.pid) + time.process_time()
        again_at = time.monotonic()
        report(session.context, [folder], Question(), session.scratch)
        again, again_cpu = time.monotonic() - again_at, cpu_s(session.pid) + time.process_time() - done_cpu
        most_mb, here_mb = peak_mb(session.pid), peak_mb(os.getpid())
    times = (
        f"rolls up {figures_at[0] - ready:.1f} s, figures {done - figures_at[0]:.1f} s",
        f"CPU {done_cpu - ready_cpu:.0f} s",
        f"again {again:.2f} s (CPU {again_cpu:.2f} s)",
        f"{most_mb} MB in Java, {here_mb} MB in Python, {worker_mb} MB in a worker",
    )
    print(f"{line} {cores} cores: session {ready - began:.1f} s; {'; '.join(times)}", flush=True)
    since_s, until_s = made.period.since_ms // 1000, made.period.until_ms // 1000
    duck = Duck(folder, cores)
    duck_began, duck_cpu = time.monotonic(), time.process_time()
    duck.roll_up((START_MS + (SECONDS[rows] - 1) * 1000) // 1000 - 1)
    duck_rolled = time.monotonic()
    found = duck.figures(since_s, until_s)
    duck_done, duck_cpu = time.monotonic(), time.process_time() - duck_cpu
    check(made, found)
    duck.check_rollups(folder)
    ratio = (done - ready) / (duck_done - duck_began)
    times = (
        f"DuckDB {duck_rolled - duck_began:.1f} s + {duck_done - duck_rolled:.1f} s",
        f"ratio {ratio:.2f} ({ratio / LIMIT:.2f} of {LIMIT:g})",
        f"CPU {done_cpu - ready_cpu:.0f} s : {duck_cpu:.0f} s = {(done_cpu - ready_cpu) / duck_cpu:.2f}",
        f"load {os.getloadavg()[0]:.1f}",
    )
    print(f"    {'; '.join(times)}", flush=True)


def main() -> None:
    flags = argparse.ArgumentParser()
    flags.add_argument("--rows", type=int, nargs="+", default=[1, 10], choices=sorted(SECONDS))
    flags.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    flags.add_argument("--folder", type=Path)
    given = flags.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for rows in given.rows:
            recording = (given.folder or Path(scratch)) / f"{rows}M"
            if not recording.exists():
                write_recording(recording, PARTITIONS[rows], SECONDS[rows], facts=True)
            files = list(recording.glob("seg-*/*_deltas.parquet"))
            count = sum(pq.read_metadata(file).num_rows for file in files)
            size = sum(file.stat().st_size for file in files) >> 20
            for cores in given.cores:
                measure(recording, cores, rows, f"{count / 1e6:.1f} M rows ({size} MB),")


if __name__ == "__main__":
    main()
