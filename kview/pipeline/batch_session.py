"""A Spark context for reports: a JVM of its own, on this machine or as the driver of a cluster."""

import logging
import math
import os
import re
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import kview
from kview.config.scratch import REPORTS, Scratch
from kview.errors import BadUse, ClusterUnreachable, ErrorKind, KviewError
from kview.model import sums
from kview.pipeline.jvm import GATEWAY_WITHIN_S, PACKAGES, Batch, Gateway, choose_java
from kview.pipeline.kernel.needs import lacks
from kview.pipeline.session import LOOPBACK, new_context
from kview.pipeline.spark_internals import executors, forget_gateway

if TYPE_CHECKING:
    from pyspark import SparkContext

HEAP_MB = 1024
"""The heap of the driver, which hands out tasks and gathers what they find."""

SESSION_WITHIN_S = 26.0
"""Limit for a session on a cluster, Java's start included, so that kview says within half a minute that a
master cannot be reached. Spark itself tries for a minute."""

LEAST_WITHIN_S = 10.0
"""The least of this time that is left for a session after Java has started, which may have downloaded
packages."""

LEAST_WITH_PACKAGES_S = 60.0
"""The same with packages: Spark takes in jars of hundreds of megabytes, before it talks to the master."""

EXECUTOR_WITHIN_S = 60.0
"""Executors are Java processes that workers start, which may be busy."""

CONNECTS_WITHIN_S = 5.0

END_WITHIN_S = 3.0

WORKER_PYTHON = "python3"
"""The Python of a cluster's workers, unless another one is named."""

POLL_S = 0.2
"""Interval at which progress is asked for."""

SETTINGS = {
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tasks:
    """What Spark works on: stages that run or wait, tasks that are done in them, and their number."""

    stages: int
    done: int
    total: int


class BatchSession:
    """A Spark context for a batch, to use in a `with` statement.

    `master` is `local[N]`, `spark://HOST:PORT`, or anything else that Spark knows. `worker_python` is the
    Python that a cluster's workers run. `on_tasks` is called on a thread of this object a few times per
    second while there is work. Without `own_group`, what ends this process's group ends the JVM.
    """

    def __init__(
        self,
        master: str = "",
        *,
        heap_mb: int = HEAP_MB,
        worker_python: str = WORKER_PYTHON,
        on_tasks: Callable[[Tasks], None] | None = None,
        settings: Mapping[str, str] | None = None,
        cluster_within_s: float = SESSION_WITHIN_S,
        own_group: bool = True,
    ) -> None:
        self.master = master or f"local[{os.cpu_count() or 1}]"
        self._heap_mb = heap_mb
        self._worker_python = worker_python
        self._on_tasks = on_tasks
        self._settings = dict(settings or {})
        self._within_s = cluster_within_s
        self._own_group = own_group
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._cancelled = False
        self._gateway: Gateway | None = None
        self._context: SparkContext | None = None

    @property
    def is_local(self) -> bool:
        """Whether everything happens on this machine."""
        return self.master.startswith("local")

    def __enter__(self) -> Self:
        """Start the JVM and the session. Raises KviewError."""
        self._began_s = time.monotonic()
        host = _master_address(self.master)
        self._folder = Scratch(REPORTS)
        self.scratch = self._folder.path
        try:
            self._start(host)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self, host: str) -> None:
        reading, writing = os.pipe()
        threading.Thread(target=_log_lines, args=(reading,), name="java's log", daemon=True).start()
        try:
            held = self._folder.held_by
            batch = Batch(self._heap_mb, writing, self._submitted(), self._own_group, held)
            self._gateway = Gateway(choose_java(os.environ), self.scratch, batch)
        finally:
            os.close(writing)
        # A session on this machine has no limit: it gets there as long as Java runs, however busy the
        # machine is.
        gateway = self._gateway
        gateway.connect(math.inf if self.is_local else GATEWAY_WITHIN_S, lambda: self._cancelled)
        self._check()
        outcome: list[SparkContext | Exception] = []

        def make() -> None:
            try:
                outcome.append(self._new_context(host))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=make, name="spark's session", daemon=True)
        thread.start()
        deadline_s = self._began_s + (math.inf if self.is_local else self._within_s)
        least_s = LEAST_WITH_PACKAGES_S if PACKAGES in self._settings else min(LEAST_WITHIN_S, self._within_s)
        deadline_s = max(deadline_s, time.monotonic() + least_s)
        while thread.is_alive() and not self._cancelled and time.monotonic() < deadline_s:
            thread.join(POLL_S)
            if (code := gateway.process.poll()) is not None and not outcome:
                raise KviewError(ErrorKind.JAVA_ENDED, code=code)
        self._check()
        context = outcome[0] if outcome else None
        if context is None or isinstance(context, Exception):
            _log.warning("no Spark session", exc_info=context)
            if self.is_local:
                raise KviewError(ErrorKind.SPARK_FAILED, cause="no session")
            raise ClusterUnreachable(ErrorKind.SPARK_MASTER_UNREACHABLE, master=self.master)
        self._context = context
        if not self.is_local:
            self._wait_for_executor(context)
            self._equip(context)
        if self._on_tasks is not None:
            threading.Thread(target=self._tell, name="spark's progress", daemon=True).start()

    def _submitted(self) -> dict[str, str]:
        """Return the settings for Spark's own launcher, none if it is not needed."""
        if self.master.startswith(("local", "spark://")) and PACKAGES not in self._settings:
            return {}
        # Hadoop's settings, among them the keys of stores, would be seen in the list of processes.
        shown = {name: v for name, v in self._settings.items() if not name.startswith("spark.hadoop.")}
        return {"spark.master": self.master, **shown}

    def _check(self) -> None:
        if self._cancelled:
            raise KviewError(ErrorKind.REPORT_CANCELLED)

    def _wait_for_executor(self, context: "SparkContext") -> None:
        """Wait until there is an executor, because a job without any waits for ever."""
        deadline_s = time.monotonic() + max(EXECUTOR_WITHIN_S, self._within_s)
        while not executors(context):
            self._check()
            if time.monotonic() > deadline_s:
                raise ClusterUnreachable(
                    ErrorKind.SPARK_NO_EXECUTOR, master=self.master, within_s=EXECUTOR_WITHIN_S
                )
            time.sleep(POLL_S)

    def _equip(self, context: "SparkContext") -> None:
        """Send workers what they run, after asking whether their Python can. Raises KviewError."""
        context.addPyFile(str(_packed_kernel(self.scratch)))
        try:
            lacking = context.parallelize(range(executors(context)), executors(context)).map(lacks).collect()
        except Exception as error:
            self._check()
            raise self._why_not_equipped(error) from error
        if modules := sorted({name for some in lacking for name in some}):
            raise BadUse(
                ErrorKind.WORKERS_LACK_MODULES, python=self._worker_python, modules=" and ".join(modules)
            )

    def _why_not_equipped(self, error: Exception) -> KviewError:
        """Return why workers could not even say what they lack."""
        if mismatch := re.search(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+)\D+(\d+\.\d+)", str(error), re.DOTALL):
            theirs, ours = mismatch.groups()
            return BadUse(
                ErrorKind.WORKERS_OTHER_PYTHON, python=self._worker_python, theirs=theirs, ours=ours
            )
        if f'Cannot run program "{self._worker_python}"' in str(error):
            return BadUse(ErrorKind.WORKERS_LACK_PYTHON, python=self._worker_python)
        return self.error_of(error)

    def _new_context(self, host: str) -> "SparkContext":
        if not self.is_local:
            os.environ["PYSPARK_PYTHON"] = self._worker_python
        return new_context("kview report", self.master, host, self.scratch, {**SETTINGS, **self._settings})

    @property
    def context(self) -> "SparkContext":
        """Spark's context. The session must have started."""
        assert self._context is not None
        return self._context

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        assert self._gateway is not None
        return self._gateway.process.pid

    def cancel(self) -> None:
        """Cancel all jobs, so that whatever waits for them raises. May be called from any thread."""
        self._cancelled = True
        with self._lock, suppress(Exception):
            if self._context is not None:
                self._context.cancelAllJobs()

    def kill(self) -> None:
        """Kill the JVM at once, for a process that ends itself. May be called from any thread."""
        self._cancelled = True
        if self._gateway is not None:
            with suppress(OSError):
                self._gateway.process.kill()

    def error_of(self, error: Exception, folders: Sequence[Path] = ()) -> KviewError:
        """Return what a failed job means for the user. The log file has all of it.

        `folders` are those that it wrote to, besides its own.
        """
        _log.error("a Spark job failed", exc_info=error)
        code = self._gateway.process.poll() if self._gateway is not None else None
        if code is None and self._gateway is not None:
            with suppress(Exception):
                code = self._gateway.process.wait(0.5)
        if code == OUT_OF_MEMORY or "OutOfMemoryError" in str(error):
            return KviewError(ErrorKind.REPORT_OUT_OF_MEMORY, heap=self._heap_mb)
        if code is not None:
            return KviewError(ErrorKind.JAVA_ENDED, code=code)
        if "No space left on device" in str(error):
            return KviewError(
                ErrorKind.SPARK_DISK_FULL, folder=_one_per_disk([*folders, self.scratch.parent])
            )
        said = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        return KviewError(ErrorKind.SPARK_FAILED, cause=said[:MAX_WORDS])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """End the session and the JVM."""
        self._ended.set()
        with self._lock:
            session, self._context = self._context, None
        if session is not None and kind is None:
            with suppress(Exception):
                session.stop()
        if self._gateway is not None:
            self._gateway.end(END_WITHIN_S if kind is None else 0.5)
            forget_gateway()
        self._folder.remove()

    def _tell(self) -> None:
        last: Tasks | None = None
        while not self._ended.wait(POLL_S):
            try:
                with self._lock:
                    if self._context is None:
                        return
                    tracker = self._context.statusTracker()
                    infos = [info for s in tracker.getActiveStageIds() if (info := tracker.getStageInfo(s))]
            except Exception:
                return  # the JVM has ended, which the job's own call reports
            now = Tasks(
                len(infos),
                sum(info.numCompletedTasks for info in infos),
                sum(info.numTasks for info in infos),
            )
            if now != last and self._on_tasks is not None:
                self._on_tasks(now)
            last = now


KERNEL = Path(__file__).parent / "kernel"


def _packed_kernel(folder: Path) -> Path:
    """Write the kernel as a zip file to `folder`, and return its path.

    Its packages are empty around it, so that nothing but the kernel is imported. Raises OSError.
    """
    root = Path(kview.__file__).parent.parent
    path = folder / "kview-kernel.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for package in ("kview", "kview/model", "kview/pipeline"):
            packed.writestr(f"{package}/__init__.py", "")
        for file in (Path(sums.__file__), *sorted(KERNEL.glob("*.py"))):
            packed.write(file, file.relative_to(root))
    return path


def _one_per_disk(folders: Sequence[Path]) -> str:
    """Return the first of these folders on each disk, in words. Java does not say which disk is full."""
    disks: dict[int, Path] = {}
    for folder in folders:
        while not folder.exists():
            folder = folder.parent
        disks.setdefault(folder.stat().st_dev, folder)
    return " or ".join(map(str, disks.values()))


OUT_OF_MEMORY = 3
"""Java's exit status with -XX:+ExitOnOutOfMemoryError."""

MAX_WORDS = 160


def _log_lines(reading: int) -> None:
    with os.fdopen(reading, errors="replace") as lines:
        for line in lines:
            _log.warning("%s", line.rstrip())


def _master_address(master: str) -> str:
    """Return this machine's address as the master sees it, after checking that a standalone master listens.

    Raises ClusterUnreachable, or BadUse if the master's URL is wrong.
    """
    if not master.startswith("spark://"):
        return LOOPBACK if master.startswith("local") else socket.gethostname()
    reached = ""
    for address in master.removeprefix("spark://").split(","):
        try:
            parts = urlsplit(f"//{address}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or not port:
            raise BadUse(ErrorKind.SPARK_MASTER_WRONG, master=master)
        with suppress(OSError), socket.create_connection((host, port), CONNECTS_WITHIN_S) as link:
            reached = str(link.getsockname()[0])
    if not reached:
        raise ClusterUnreachable(ErrorKind.SPARK_MASTER_UNREACHABLE, master=master)
    return reached
