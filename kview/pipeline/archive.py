"""Java's class-data archive of the live job: with it a start takes a second less.

It is made once, by a process with a JVM of its own, and kept in the user's cache folder: 150 MB.

`python -m kview.pipeline.archive` makes it. It ends when its standard input does.
"""

import argparse
import hashlib
import os
import signal
import sys
import threading
from importlib.metadata import version
from pathlib import Path

import platformdirs

from kview.pipeline.jvm import HEAP, QUICK_START, Gateway, class_path, java_version, spark_home

ONE_FILE_FROM = 25
"""From this Java on the archive stands by itself; before, it adds to one that comes with Java."""

LEARNT_WITHIN_S = 20.0
"""How long the stream is waited for; what it needs is most of what a start needs, but not all."""

MADE_WITHIN_S = 180.0
"""Java takes ten seconds of a core to write it; this one has only what others leave."""

_ONLY_ERRORS = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java warns of every class that it cannot keep."""


def archive_of(java: Path) -> Path:
    """Where the archive is, or will be, that fits this Java, this Spark and these options."""
    jars = spark_home() / "jars"
    runtime = java.resolve()
    of = (runtime, runtime.stat().st_mtime_ns, jars, jars.stat().st_mtime_ns, version("pyspark"))
    digest = hashlib.sha256(repr((of, HEAP, QUICK_START, class_path())).encode()).hexdigest()[:16]
    return Path(platformdirs.user_cache_path("kview")) / f"spark-{digest}.archive"


def reading(java: Path) -> tuple[str, ...]:
    """Java's options to use the archive, where there is one. One that does not fit is left aside by Java."""
    archive = archive_of(java)
    if not archive.is_file():
        return ()
    return (f"-XX:{'AOTCache' if _in_one_file(java) else 'SharedArchiveFile'}={archive}", *_ONLY_ERRORS)


def make(java: Path, recording: Path, scratch: Path) -> None:
    """Runs the live job on that recording until it knows its classes, and keeps them. Raises OSError,
    KviewError, and what PySpark raises."""
    from kview.pipeline.live import start
    from kview.pipeline.session import new_session

    archive = archive_of(java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    written = archive.with_suffix(f".{os.getpid()}.new")
    option = "AOTCacheOutput" if _in_one_file(java) else "ArchiveClassesAtExit"
    gateway = Gateway(java, scratch, (f"-XX:{option}={written}", *_ONLY_ERRORS))
    threading.Thread(target=_end_with_input, args=(written,), name="input", daemon=True).start()
    try:
        gateway.connect()
        batches, streaming = 0, threading.Event()

        def hear(rollups: object) -> None:
            nonlocal batches
            batches += 1
            if batches == 2:  # The first one comes before the stream.
                streaming.set()

        session = new_session(scratch, threads=2)
        query = start(session, recording, -1, scratch, hear)
        streaming.wait(LEARNT_WITHIN_S)
        query.stop()
        session.stop()
        gateway.end(MADE_WITHIN_S)
        if written.is_file():
            written.replace(archive)
            for other in archive.parent.glob("spark-*"):
                if other != archive:
                    other.unlink(missing_ok=True)
    finally:
        _clear(written)


def _in_one_file(java: Path) -> bool:
    return (java_version(java) or 0) >= ONE_FILE_FROM


def _end_with_input(written: Path) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    _clear(written)
    os.killpg(0, signal.SIGKILL)


def _clear(written: Path) -> None:
    """Java writes another file beside it."""
    for path in written.parent.glob(f"{written.name}*"):
        path.unlink(missing_ok=True)


def main() -> None:
    """Make it, where nothing else wants the processor."""
    flags = argparse.ArgumentParser()
    for flag in ("--java", "--recording", "--scratch"):
        flags.add_argument(flag, type=Path, required=True)
    given = flags.parse_args()
    # What ends this process ends all that it has started.
    os.setpgid(0, 0)
    os.nice(19)
    make(given.java, given.recording, given.scratch)


if __name__ == "__main__":
    main()
