"""The figures of a report, as expressions over roll-ups. The definitions are those of `kview.derive.windows`.

Each function returns a small DataFrame: a row per cluster and key. `Figures` has what they start from.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from kview.derive.windows import PERCENTS
from kview.model.aggregates import SUMS, Kind, Sum
from kview.pipeline.minutes import PEAK_SHIFT, SUMMED
from kview.pipeline.periods import Share
from kview.pipeline.rollup_columns import rows_of
from kview.pipeline.schemas import MINUTES_TABLE, SECONDS_TABLE, schema_of_table
from kview.recording.fact_schema import FACTS

STATES = ("offline", "silent", "under_min_isr", "under_replicated")
KEY = ("cluster", "kind", "name")

_COUNTED = tuple(map(str, SUMS))


@dataclass(frozen=True, slots=True)
class Filters:
    """Which topics and groups a report is about: patterns of Java's regular expressions, '' for all."""

    topics: str = ""
    groups: str = ""


class Figures:
    """The roll-ups that a report is about."""

    def __init__(self, spark: SparkSession, counted: Sequence[Share], filters: Filters) -> None:
        self._spark = spark
        self._counted = counted
        self._filters = filters
        self._lock = threading.Lock()

    @property
    def of_partitions(self) -> DataFrame:
        """One row per partition with any figure; it is calculated once."""
        with self._lock:
            return self._partition_sums

    def forget(self) -> None:
        """Free what was calculated once."""
        if "_partition_sums" in self.__dict__:
            self._partition_sums.unpersist()

    @cached_property
    def seconds(self) -> DataFrame:
        """One row per cluster, kind, name and second that counts."""
        return self._seconds()

    @cached_property
    def _windows(self) -> DataFrame:
        return f.broadcast(self._spark.createDataFrame(_windows(self._counted)))

    @cached_property
    def _known(self) -> DataFrame:
        return f.broadcast(self._spark.createDataFrame(_known(self._counted)))

    @cached_property
    def _partition_sums(self) -> DataFrame:
        return self._of_partitions()

    def table(self, name: str) -> DataFrame | None:
        """Return a table of all batches, with the columns of `_windows`. None if no batch has rows of it."""
        paths = [
            str(path)
            for share in self._counted
            for batch in share.rolled.batches
            if (path := Path(batch.folder, name)).is_dir()
        ]
        # Planning a query about no rows takes as long as planning one about many.
        if not paths or (name in FACTS and not rows_of(self._counted, (name,))):
            return None
        rows = self._spark.read.schema(schema_of_table(name)).parquet(*paths)
        return rows.join(self._windows, "batch")

    def _seconds(self) -> DataFrame:
        """Return one row per cluster, kind, name and second that counts."""
        table = self.table(SECONDS_TABLE)
        assert table is not None, "every batch has one-second roll-ups"
        table = table.where("second >= from_s and second < until_s")
        if self._filters.topics:
            table = table.where((f.col("kind") != Kind.TOPIC) | f.col("name").rlike(self._filters.topics))
        if self._filters.groups:
            table = table.where((f.col("kind") != Kind.GROUP) | f.col("name").rlike(self._filters.groups))
        settled = f.col("second") < f.col("out_until_s")
        records_out = f.when(settled, f.col(Sum.RECORDS_OUT)).otherwise(0).alias(Sum.RECORDS_OUT)
        hottest = f.when((f.col("kind") != Kind.GROUP) | settled, f.col("hottest")).alias("hottest")
        columns = [records_out if name == Sum.RECORDS_OUT else f.col(name) for name in _COUNTED]
        table = table.select(*KEY, "second", *columns, hottest, "topic_partitions")
        if all(sum(batch.about.parts for batch in share.rolled.batches) == 1 for share in self._counted):
            return table
        # An interval that began in one part and ended in the next has a share of a second in both.
        return table.groupBy(*KEY, "second").agg(
            *(f.sum(name).alias(name) for name in _COUNTED),
            f.max("hottest").alias("hottest"),
            f.max("topic_partitions").alias("topic_partitions"),
        )

    def _minutes(self) -> DataFrame:
        table = self.table(MINUTES_TABLE)
        assert table is not None, "every batch has one-minute roll-ups"
        table = table.where("slot >= from_minute_s and slot < until_s")
        return table.where(f.col("topic").rlike(self._filters.topics)) if self._filters.topics else table

    def sums(self) -> DataFrame:
        """Return the sums of every key, seconds with partitions in each state, and what skew needs:
        `hottest_total`, `partition_sum` ÷ `partition_seconds`, and `partitions` of a topic."""
        partitions = f.coalesce("topic_partitions", f.lit(0)).cast("long")
        held_ms = f.when(f.col("kind") == Kind.TOPIC, partitions * 1000).otherwise(f.col(Sum.ACTIVE_MS))
        return self.seconds.groupBy(*KEY).agg(
            *(f.sum(name).alias(name) for name in _COUNTED),
            *(f.sum(_one_if(f.col(f"{name}_ms") > 0)).alias(f"{name}_s") for name in STATES),
            f.coalesce(f.sum("hottest.rate"), f.lit(0)).alias("hottest_total"),
            (f.sum(held_ms) / 1000).alias("partition_sum"),
            f.sum(_one_if(held_ms > 0)).alias("partition_seconds"),
            f.max("topic_partitions").alias("partitions"),
        )

    def percentiles(self) -> DataFrame:
        """Return the percentiles of the records in per second, as `in_p50` … over all known seconds, and the
        greatest second, as `in_most` and `in_most_s`. Keys without records in are left out."""
        some = self.seconds.where((f.col("kind") != Kind.GROUP) & (f.col(Sum.RECORDS_IN) > 0))
        some = some.select(*KEY, "second", Sum.RECORDS_IN).join(self._known, "cluster")
        its = Window.partitionBy(*KEY)
        in_order = its.orderBy(f.col(Sum.RECORDS_IN), f.col("second").desc())
        ranked = some.select(
            "*", f.row_number().over(in_order).alias("at"), f.count(f.lit(1)).over(its).alias("count")
        )
        # Seconds without records come first in the order, and have no rows.
        ranks = {
            percent: f.ceil(f.col("known_s") * percent / 100)
            - f.greatest(f.col("known_s") - f.col("count"), f.lit(0))
            for percent in PERCENTS
        }
        at, value = f.col("at"), f.col(Sum.RECORDS_IN)
        is_needed = at == f.col("count")
        for rank in ranks.values():
            is_needed = is_needed | (at == rank)
        needed = ranked.where(is_needed)
        return needed.groupBy(*KEY).agg(
            *(
                f.coalesce(f.max(f.when(at == rank, value)), f.lit(0)).alias(f"in_p{percent}")
                for percent, rank in ranks.items()
            ),
            f.max(value).alias("in_most"),
            f.max(f.when(at == f.col("count"), f.col("second"))).alias("in_most_s"),
        )

    def hottest(self) -> DataFrame:
        """Return the partition with the greatest sum of rates over the seconds in which it was the hottest,
        as `topic` and `partition`. Of equally hot partitions it is the first by name."""
        rates = (
            self.seconds.where("hottest is not null")
            .groupBy(
                *KEY, f.col("hottest.topic").alias("topic"), f.col("hottest.partition").alias("partition")
            )
            .agg(f.sum("hottest.rate").alias("rates"))
        )
        named = f.struct("topic", "partition")
        first = f.min_by(named, f.struct(-f.col("rates"), "topic", "partition")).alias("found")
        return rates.groupBy(*KEY).agg(first).select(*KEY, "found.topic", "found.partition")

    def throughput(self, topics: Sequence[tuple[str, str]], step_s: int) -> DataFrame:
        """Return the sums of each step of `step_s`, of clusters and of these (cluster, topic) pairs."""
        chosen = pa.table(
            {
                "cluster": pa.array([cluster for cluster, _ in topics], pa.string()),
                "name": pa.array([topic for _, topic in topics], pa.string()),
            }
        )
        mine = self.seconds.where(f.col("kind") == Kind.TOPIC)
        if len(topics):
            mine = mine.join(
                f.broadcast(self._spark.createDataFrame(chosen)), ["cluster", "name"], "left_semi"
            )
        else:
            mine = mine.where(f.lit(False))
        both = mine.unionByName(self.seconds.where(f.col("kind") == Kind.CLUSTER))
        step = (f.floor(f.col("second") / step_s) * step_s).alias("at_s")
        names = (Sum.RECORDS_IN, Sum.CENTIBYTES_IN, Sum.RECORDS_OUT, Sum.REPLICATED, Sum.CROSS_RACK)
        return both.groupBy("cluster", step, "name").agg(*(f.sum(name).alias(name) for name in names))

    def _of_partitions(self) -> DataFrame:
        sums = (
            self._minutes()
            .groupBy("cluster", "topic", "partition")
            .agg(
                *(f.sum(name).alias(name) for name in SUMMED),
                f.max("peak").alias("peak"),
                f.max("internal").alias("internal"),
            )
        )
        return sums.persist()

    def partitions(self, most: int) -> DataFrame:
        """Return partitions: the `most` busiest, the busiest of each of the `most` least even topics, and the
        `most` with the longest time in a bad state."""
        of_topic = Window.partitionBy("cluster", "topic")
        ranked = self.of_partitions.select(
            "*",
            sum((f.col(f"{name}_ms") for name in STATES), f.lit(0)).alias("bad_ms"),
            f.row_number().over(of_topic.orderBy(f.desc("records_in"), "partition")).alias("rank"),
            (f.col("records_in") / f.avg("records_in").over(of_topic)).alias("uneven"),
        )
        busiest = ranked.orderBy(f.desc("records_in"), *_NAMES).limit(most)
        skewed = ranked.where("rank = 1 and records_in > 0").orderBy(f.desc("uneven"), *_NAMES).limit(most)
        worst = ranked.where("bad_ms > 0").orderBy(f.desc("bad_ms"), *_NAMES).limit(most)
        return busiest.unionByName(skewed).unionByName(worst).drop("rank", "uneven", "bad_ms").distinct()

    def traffic(self) -> DataFrame:
        """Return the replicated records and their estimated sizes, and the number of partitions with any
        figure, by topic."""
        names = (
            "centibytes_in",
            "replicated",
            "replicated_centibytes",
            "cross_rack",
            "cross_rack_centibytes",
        )
        return self.of_partitions.groupBy("cluster", "topic").agg(
            *(f.sum(name).alias(name) for name in names), f.count(f.lit(1)).alias("partitions")
        )


_NAMES = ("cluster", "topic", "partition")


def _one_if(condition: Column) -> Column:
    return f.when(condition, 1).otherwise(0)


def peak_of(peak: int) -> tuple[int, int]:
    """Return the rate and the epoch second of a peak."""
    return peak >> PEAK_SHIFT, peak & ((1 << PEAK_SHIFT) - 1)


def _windows(counted: Sequence[Share]) -> pa.Table:
    """Return what counts of each batch.

    `from_minute_s` is for minutes: what comes before a recording's first second is not in them.
    """
    rows = [
        {
            "batch": batch.about.id,
            "cluster": share.cluster,
            "recording": number,
            "from_s": share.seconds.from_s,
            "until_s": share.seconds.until_s,
            "out_until_s": share.out.until_s,
            "from_minute_s": share.seconds.from_s // 60 * 60,
        }
        for number, share in enumerate(counted)
        for batch in share.rolled.batches
    ]
    return pa.Table.from_pylist(rows)


def _known(counted: Sequence[Share]) -> pa.Table:
    """Return the number of known seconds of each cluster."""
    clusters = sorted({share.cluster for share in counted})
    known = [sum(share.known_s() for share in counted if share.cluster == one) for one in clusters]
    return pa.table({"cluster": pa.array(clusters, pa.string()), "known_s": pa.array(known, pa.int64())})
