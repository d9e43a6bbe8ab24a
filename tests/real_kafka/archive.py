"""An archive of Kafka's loaded classes (class data sharing), which halves the time that a node's start takes.

It is made once per Java and release, beside the jars, by a node that is broker and controller. A JVM that
cannot use it, because a jar or the Java has changed, starts without it.
"""

import fcntl
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.real_kafka.settings import (
    LOGGING,
    LOGGING_BEFORE_KAFKA_4,
    LOOPBACK,
    SMALL,
    common,
    properties,
)
from tests.waiting import wait_until

CLASS_PATH = "{jars}/*"
HEAP = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""Classes of an archive are not verified again; without one, that takes a sixth of a start."""

LIMIT_S = 120.0
STARTED = "Kafka Server started"
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


@cache
def archive(java: Path, jars: Path) -> Path:
    """Where the archive of this Java for these jars is, once it is made."""
    binary = java.resolve()
    home = binary.parent.parent
    return jars.parent / f"{jars.name}-{home.name}-{int(binary.stat().st_mtime)}.jsa"


def options(java: Path, jars: Path) -> tuple[str, ...]:
    """The flags with which a JVM uses the archive, or starts without one."""
    made = archive(java, jars)
    is_made = made.exists() and made.stat().st_size > 0
    return (f"-XX:SharedArchiveFile={made}", "-Xshare:auto") if is_made else UNVERIFIED


def write_logging(folder: Path) -> None:
    """Write the files that `logging` names."""
    (folder / "log4j2.xml").write_text(LOGGING)
    (folder / "log4j.properties").write_text(LOGGING_BEFORE_KAFKA_4)


def logging(folder: Path, jars: Path) -> str:
    """The flag that configures a node's logging by a file in this folder, which depends on the release."""
    if any(jars.glob("reload4j-*.jar")):
        return f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"
    return f"-Dlog4j2.configurationFile={folder / 'log4j2.xml'}"


def make(java: Path, jars: Path, ports: Sequence[int]) -> None:
    """Make the archive if there is none, with a node on two free ports. Parallel callers wait for each other.

    Clusters start without one, too, so a node that does not start is not an error here.
    """
    made = archive(java, jars)
    with (made.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=made.parent) as work:
                written = Path(work, made.name)
                if _starts_and_ends(java, jars, Path(work), written, ports):
                    if not written.exists():
                        written.touch()  # This Java makes none: nobody has to try that again.
                    written.rename(made)


def _starts_and_ends(java: Path, jars: Path, work: Path, written: Path, ports: Sequence[int]) -> bool:
    """Run a node that writes the archive when it ends. Return whether it ended in time."""
    own, controllers = ports
    listeners = f"PLAINTEXT://{LOOPBACK}:{own},CONTROLLER://{LOOPBACK}:{controllers}"
    roles = {"process.roles": "broker,controller", "listeners": listeners}
    config = work / "server.properties"
    config.write_text(properties({**common(work, 1, [controllers]), **roles, **SMALL}))
    write_logging(work)
    log = work / "node.log"

    def run(*words: str) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [java, *HEAP, logging(work, jars), "-cp", CLASS_PATH.format(jars=jars), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(config), "--standalone").wait(LIMIT_S)
    node = run(f"-XX:ArchiveClassesAtExit={written}", "kafka.Kafka", str(config))
    try:
        with suppress(AssertionError, subprocess.TimeoutExpired):
            wait_until(lambda: STARTED in log.read_text() or node.poll() is not None, "it starts", LIMIT_S)
            node.terminate()
            node.wait(LIMIT_S)
    finally:
        node.kill()
        node.wait()
    return node.returncode != -signal.SIGKILL
