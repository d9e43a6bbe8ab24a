"""The figures of a report that come from the recorder's facts (`kview.recording.fact_schema`)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kview.pipeline.figures import Figures

SEVERITIES = ("good", "calm", "warn", "risk")
"""The worst one last."""

SIZE_SETTINGS = ("partitions", "replicas", "retention_ms", "retention_bytes", "cleanup_policy")
"""What a topic's last row of sizes says besides them."""

_OVERLAP_MS = """greatest(least(observed_ms, until_s * 1000)
    - greatest(observed_ms - interval_ms, from_s * 1000), 0)"""
"""How much of a row's interval counts, in ms."""


def group_lags(figures: Figures, pattern: str, threshold_ms: int) -> DataFrame | None:
    """Return each group's greatest lags and when they were first seen, the time above the threshold and the
    time in which the lag in time was known. None without such facts."""
    table = figures.table("group_lags")
    if table is None:
        return None
    if pattern:
        table = table.where(f.col("group").rlike(pattern))
    held = table.withColumn("counted_ms", f.expr(_OVERLAP_MS)).where(
        "counted_ms > 0 or (observed_ms >= from_s * 1000 and observed_ms < until_s * 1000)"
    )
    at_most_behind = f.struct(-f.col("behind_ms"), "observed_ms", "worst_topic", "worst_partition")
    behind = f.col("behind_ms").isNotNull()
    return held.groupBy("cluster", "group").agg(
        f.max("lag").alias("lag_most"),
        _first_at("lag").alias("lag_most_ms"),
        f.max("behind_ms").alias("behind_most"),
        _first_at("behind_ms").alias("behind_most_ms"),
        f.sum(f.when(f.col("behind_ms") > threshold_ms, f.col("counted_ms")).otherwise(0)).alias("above_ms"),
        f.sum(f.when(behind, f.col("counted_ms")).otherwise(0)).alias("lag_known_ms"),
        f.min_by(
            f.when(behind, f.struct("worst_topic", "worst_partition")), f.when(behind, at_most_behind)
        ).alias("worst"),
        f.max("lost").alias("lost"),
    )


def _first_at(name: str) -> Column:
    """Return when the greatest value of a column was first seen; a row is seen at the end of its interval."""
    known = f.col(name).isNotNull()
    began_ms = f.col("observed_ms") - f.col("counted_ms")
    return f.min(f.when(known, f.struct((-f.col(name)).alias("order"), began_ms.alias("at")))).getField("at")


def findings(figures: Figures) -> DataFrame | None:
    """Return how long each kind of finding held, its worst severity and its greatest counts."""
    table = figures.table("findings")
    if table is None:
        return None
    held = table.withColumn("counted_ms", f.expr(_OVERLAP_MS)).where(
        "counted_ms > 0 or (observed_ms >= from_s * 1000 and observed_ms < until_s * 1000)"
    )
    order = f.array(*map(f.lit, SEVERITIES))
    partitions = f.coalesce("partitions", f.lit(0)) + f.coalesce("internal_partitions", f.lit(0))
    # Findings of one kind about several groups stand at the same time.
    at_once = held.groupBy("cluster", "recording", "kind", "sequence").agg(
        f.max_by("severity", f.array_position(order, f.col("severity"))).alias("severity"),
        f.max("counted_ms").alias("counted_ms"),
        f.max("observed_ms").alias("observed_ms"),
        f.max(partitions).alias("partitions"),
        f.sum("groups").alias("groups"),
    )
    return at_once.groupBy("cluster", "kind").agg(
        f.max_by("severity", f.array_position(order, f.col("severity"))).alias("severity"),
        f.sum("counted_ms").alias("held_ms"),
        f.min(f.col("observed_ms") - f.col("counted_ms")).alias("first_ms"),
        f.max("observed_ms").alias("last_ms"),
        f.max("partitions").alias("partitions_most"),
        f.max("groups").alias("groups_most"),
    )


def incidents(figures: Figures, most: int) -> DataFrame | None:
    """Return the incidents that went on in the period, the first `most` of them."""
    table = figures.table("incidents")
    if table is None:
        return None
    names = [name for name in table.columns if name not in ("batch", "cluster", "id")]
    last = table.groupBy("cluster", "recording", "id").agg(
        f.max_by(f.struct(*names), "sequence").alias("last")
    )
    told = last.select("cluster", "last.*").where(
        "began_ms < until_s * 1000 and coalesce(ended_ms, observed_ms) >= from_s * 1000"
    )
    for name in ("brokers", "controllers", "racks"):
        told = told.withColumn(name, f.concat_ws(",", f.transform(name, lambda one: one.cast("string"))))
    return told.orderBy("began_ms", "cluster", "kind", "recording").limit(most)


def elections(figures: Figures, pattern: str) -> DataFrame | None:
    """Return how often the partitions of each topic changed or lost their leader."""
    table = figures.table("elections")
    if table is None:
        return None
    if pattern:
        table = table.where(f.col("topic").rlike(pattern))
    led = f.col("new_leader").isNotNull()
    return (
        table.where("observed_ms >= from_s * 1000 and observed_ms < until_s * 1000")
        .groupBy("cluster", "topic")
        .agg(
            f.sum(f.when(led, 1).otherwise(0)).alias("elections"),
            f.sum(f.when(led, 0).otherwise(1)).alias("lost_leader"),
            f.sum(f.when(f.col("unclean"), 1).otherwise(0)).alias("unclean"),
            f.count_distinct("partition").alias("partitions"),
            f.min("observed_ms").alias("first_ms"),
            f.max("observed_ms").alias("last_ms"),
        )
    )


def sizes(figures: Figures, pattern: str) -> DataFrame | None:
    """Return the first and the last known size of each topic, and its settings at last."""
    table = figures.table("sizes")
    if table is None:
        return None
    if pattern:
        table = table.where(f.col("topic").rlike(pattern))
    inside = table.where("observed_ms >= from_s * 1000 and observed_ms < until_s * 1000")
    seen = f.struct("observed_ms", "bytes", "leader_bytes")
    known = f.col("bytes").isNotNull()
    order = f.struct("observed_ms", "recording", "sequence")
    return inside.groupBy("cluster", "topic").agg(
        f.min_by(f.when(known, seen), f.when(known, order)).alias("first"),
        f.max_by(f.when(known, seen), f.when(known, order)).alias("last"),
        *(f.max_by(name, order).alias(name) for name in SIZE_SETTINGS),
    )
