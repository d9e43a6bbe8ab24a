"""Spark contexts: quiet, and on this machine as small as possible."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kview.pipeline.spark_internals import RESERVED_MEMORY

if TYPE_CHECKING:
    from pyspark import SparkContext

LOOPBACK = "127.0.0.1"

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.appStateStore.asyncTracking.enable": "false",
    "spark.cleaner.periodicGC.interval": "10min",
}

LIVE = {
    # Nobody looks at these, and they grow in a context that runs for days.
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "10",
}
"""What else the live job sets."""

TASK_TRIES = 4
"""How many times a task is tried on this machine, as many as on Spark's clusters."""


def new_context(
    name: str, master: str, host: str, scratch: Path, settings: Mapping[str, str]
) -> "SparkContext":
    """Return a context in the JVM that `Gateway` started, with `settings` of its own.

    `name` is what Spark calls it, `host` this machine's address for its workers, `scratch` a folder for its
    files. Raises whatever Spark raises.
    """
    from pyspark import SparkConf, SparkContext

    given = {
        **QUIET,
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.local.dir": str(scratch),
        # The part of the heap that Spark does not use for data.
        **({RESERVED_MEMORY: str(64 << 20)} if master.startswith("local") else {}),
        **settings,
    }
    conf = SparkConf().setMaster(with_retries(master)).setAppName(name)
    return SparkContext(conf=conf.setAll(list(given.items())))


def with_retries(master: str) -> str:
    """Return a master that tries failed tasks again, as clusters do.

    By itself, `local[N]` gives up at a task's first failure. On a busy machine, that may only mean that a
    Python worker took longer to start than Spark waits for it.
    """
    return re.sub(r"^local\[([^],]+)\]$", rf"local[\1,{TASK_TRIES}]", master)


def is_local(context: "SparkContext") -> bool:
    """Return whether jobs run on this machine."""
    return (context.master or "").startswith("local")
