"""A Java with an archive of the classes that Spark loads (class data sharing), which halves the time that a
JVM of Spark's takes to start.

The archive is made once per Java and PySpark, in the user's cache folder, by a session that rolls up a
recording. A JVM that cannot use it, because its class path is another one, starts without it.
"""

import fcntl
import os
import tempfile
from pathlib import Path

import pyspark

from kview.pipeline.ahead import learn
from kview.pipeline.batch import rollups
from kview.pipeline.jvm import Gateway, choose_java
from kview.pipeline.live import start
from kview.pipeline.session import new_session
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
    """Roll up a small recording in a session, as the live job and a report do."""
    write_recording(scratch / "recording", 2, 10, 2)
    gateway = Gateway(java, scratch)
    try:
        gateway.connect()
        learn()
        session = new_session(scratch, threads=2)
        stream = start(session, scratch / "recording", -1, scratch, lambda table: None)
        rollups(session, scratch / "recording").write.parquet(str(scratch / "rollups"))
        assert session.read.parquet(str(scratch / "rollups")).toArrow().num_rows
        assert session.sparkContext.parallelize([1]).map(abs).collect() == [1]
        stream.stop()
        session.stop()
    finally:
        gateway.end(LIMIT_S)
        forget_gateway()
