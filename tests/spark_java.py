"""A Java with an archive of the classes that Spark loads (class data sharing), which halves the time that a
JVM of Spark's takes to start.

The archive is made once per Java and PySpark, in the user's cache folder, by a session that rolls up a
recording. A JVM that cannot use it, because its class path is another one, starts without it.
"""

import fcntl
import os
import tempfile
from functools import partial
from pathlib import Path

import pyspark

from kview.pipeline.jvm import Gateway, choose_java
from kview.pipeline.reading import next_rollups
from kview.pipeline.session import LIVE, LOOPBACK, new_context
from kview.pipeline.spark_internals import forget_gateway
from tests.benchmarks.synthetic import write_recording
from tests.real_kafka.jars import CACHE

LIMIT_S = 240.0
"""How long the JVM may take to write the archive: ten seconds on a quiet machine."""

SCRIPT = """#!/bin/sh
exec '{java}' {flags} -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off "$@"
"""
"""Java says nothing of classes that it leaves out, because kview logs what it says."""


def home() -> Path:
    """Return the JAVA_HOME of that Java, after making it if there is none. Parallel callers wait for each
    other."""
    java = choose_java(os.environ).resolve()
    name = f"spark-{pyspark.__version__}-{java.parent.parent.name}-{int(java.stat().st_mtime)}"
    CACHE.mkdir(parents=True, exist_ok=True)
    made = CACHE / name
    with (CACHE / "spark.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as work:
                folder, archive = Path(work, name), Path(work, name, "classes.jsa")
                _write(folder, java, f"-XX:ArchiveClassesAtExit='{archive}'")
                _run_once(folder / "bin" / "java", Path(work))
                _write(folder, java, f"-XX:SharedArchiveFile='{made / archive.name}' -Xshare:auto")
                folder.rename(made)
    return made


def _write(folder: Path, java: Path, flags: str) -> None:
    """Write a home of a Java that starts with these flags."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(SCRIPT.format(java=java, flags=flags))
    program.chmod(0o755)
    release = java.parent.parent / "release"
    if release.exists():
        (folder / "release").write_text(release.read_text())


def _run_once(java: Path, scratch: Path) -> None:
    """Roll up a small recording in a task, as the live job and a report do."""
    write_recording(scratch / "recording", 2, 10, 2)
    gateway = Gateway(java, scratch)
    try:
        gateway.connect()
        context = new_context("kview", "local[2]", LOOPBACK, scratch, LIVE)
        step = partial(next_rollups, str(scratch / "recording"))
        for count in (1, 4):
            assert context.parallelize([-1] * count, count).map(step).collect()[0] is not None
        context.stop()
    finally:
        gateway.end(LIMIT_S)
        forget_gateway()
