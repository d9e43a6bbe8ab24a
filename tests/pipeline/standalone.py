"""A Spark cluster on this machine: a master and workers, from the jars of PySpark's wheel."""

import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from kview.pipeline.jvm import choose_java, spark_home
from tests.waiting import wait_until

QUICK = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MetaspaceSize=192m",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
"""What makes a Java start quickly, as in `kview.pipeline.jvm`."""

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.extraJavaOptions": " ".join(QUICK),
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
}
"""What a job has to ask for, to fit into the workers, and to be quick with little data."""

FLAGS = tuple(flag for name, value in SETTINGS.items() for flag in ("--conf", f"{name}={value}"))
"""The same as flags of `kview report`."""

STARTS_WITHIN_S = 90


class Standalone:
    """The cluster, to use in a `with` statement. `url` is that of its master."""

    def __init__(self, folder: Path, port: int, workers: int = 2) -> None:
        self.url = f"spark://127.0.0.1:{port}"
        self._folder = folder
        self._port = port
        self._count = workers
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        master = ["master.Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
        self._start("master", *master)
        for number in range(self._count):
            folder = self._folder / f"work-{number}"
            flags = ["--host", "127.0.0.1", "-c", "1", "-m", "700M", "--webui-port", "0", "-d", str(folder)]
            self._start(f"worker-{number}", "worker.Worker", *flags, self.url)
        registered = self._folder / "master.log"
        wait_until(
            lambda: registered.read_text(errors="replace").count("Registering worker") == self._count,
            "workers",
            STARTS_WITHIN_S,
        )
        return self

    def _start(self, name: str, main: str, *flags: str) -> None:
        log = self._folder / "log4j2.properties"
        log.write_text(
            "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = stderr\n"
            "appender.stderr.type = Console\n"
            "appender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
            "appender.stderr.layout.type = PatternLayout\nappender.stderr.layout.pattern = %m%n\n"
        )
        command = [
            str(choose_java(os.environ)),
            *("-Xmx192m", *QUICK, f"-Dlog4j2.configurationFile={log}"),
            *("-cp", f"{spark_home()}/jars/*", f"org.apache.spark.deploy.{main}", *flags),
        ]
        with (self._folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "SPARK_HOME": str(spark_home()), "SPARK_SCALA_VERSION": "2.13"},
                start_new_session=True,
            )
        self._started.append(process)

    def executors(self, number: int) -> int:
        """Return how many executors a worker has started so far."""
        return sum(1 for _ in (self._folder / f"work-{number}").glob("app-*/*/stdout"))

    def finished_tasks(self, number: int) -> int:
        """Return how many tasks the executors of a worker have finished."""
        logs = (self._folder / f"work-{number}").glob("app-*/*/stderr")
        return sum(log.read_text(errors="replace").count("Finished task") for log in logs)

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors with SIGKILL."""
        os.killpg(self._started[1 + number].pid, signal.SIGKILL)
        self._started[1 + number].wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for process in reversed(self._started):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()
