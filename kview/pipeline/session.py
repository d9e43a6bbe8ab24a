"""A local Spark context: quiet, on the loopback interface only, as small as possible."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from kview.pipeline.spark_internals import RESERVED_MEMORY

if TYPE_CHECKING:
    from pyspark import SparkContext

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.appStateStore.asyncTracking.enable": "false",
    "spark.cleaner.periodicGC.interval": "10min",
}

SETTINGS = {
    **QUIET,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The part of the heap that Spark does not use for data.
    RESERVED_MEMORY: str(64 << 20),
    # Nobody looks at these, and they grow in a context that runs for days.
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "10",
}

TASK_TRIES = 4
"""How many times a task is tried on this machine, as many as on Spark's clusters."""


def new_context(scratch: Path, threads: int) -> "SparkContext":
    """Return a context in the JVM that `Gateway` started. `scratch` is a folder for its files."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(with_retries(f"local[{threads}]")).setAppName("kview")
    conf.set("spark.local.dir", str(scratch))
    return SparkContext(conf=conf.setAll(list(SETTINGS.items())))


def with_retries(master: str) -> str:
    """Return a master that tries failed tasks again, as clusters do.

    By itself, `local[N]` gives up at a task's first failure. On a busy machine, that may only mean that a
    Python worker took longer to start than Spark waits for it.
    """
    return re.sub(r"^local\[([^],]+)\]$", rf"local[\1,{TASK_TRIES}]", master)


def is_local(context: "SparkContext") -> bool:
    """Return whether jobs run on this machine."""
    return (context.master or "").startswith("local")
