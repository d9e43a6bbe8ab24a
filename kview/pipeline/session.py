"""A local Spark session: quiet, on the loopback interface only, as small as possible."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from kview.pipeline.spark_internals import CHECKPOINT_MANAGER, RESERVED_MEMORY

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    # Checked arithmetic takes half of a batch's time. The largest product here, records per minute ×
    # milliseconds, fits as long as there are fewer than 10¹⁴ records.
    "spark.sql.ansi.enabled": "false",
    # A batch takes a second, so planning it again while it runs costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_MANAGER,
    "spark.sql.streaming.minBatchesToRetain": "4",
    "spark.sql.streaming.numRecentProgressUpdates": "4",
    # The part of the heap that Spark does not use for data.
    RESERVED_MEMORY: str(64 << 20),
    "spark.python.use.daemon": "false",
    # Spark describes the plan of every batch for a web page that is disabled here.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "100",
    "spark.sql.debug.maxToStringFields": "3",
    # Nobody looks at these, and they grow in a session that runs for days.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "10",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.appStateStore.asyncTracking.enable": "false",
    "spark.cleaner.periodicGC.interval": "10min",
}


TASK_TRIES = 4
"""How many times a task is tried on this machine, as many as on Spark's clusters."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings that run a query without generating and compiling Java code for it."""


@contextmanager
def interpreted(spark: SparkSession, so: bool = True) -> Iterator[None]:
    """Run the queries of a `with` statement without generating code for them, if `so`: for a few thousand
    rows, that takes longer than the query."""
    for name, value in INTERPRETED.items() if so else ():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in INTERPRETED if so else ():
            spark.conf.unset(name)


def new_session(scratch: Path, threads: int) -> SparkSession:
    """Return a session in the JVM that `Gateway` started. `scratch` is a folder for its files."""
    builder = SparkSession.builder.master(with_retries(f"local[{threads}]")).appName("kview")
    builder = builder.config("spark.local.dir", str(scratch))
    builder = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def with_retries(master: str) -> str:
    """Return a master that tries failed tasks again, as clusters do.

    By itself, `local[N]` gives up at a task's first failure. On a busy machine, that may only mean that a
    Python worker took longer to start than Spark waits for it.
    """
    return re.sub(r"^local\[([^],]+)\]$", rf"local[\1,{TASK_TRIES}]", master)


def is_local(spark: SparkSession) -> bool:
    """Return whether a session's jobs run on this machine."""
    return (spark.sparkContext.master or "").startswith("local")
