"""A simulated cluster in a child process, observed through its sockets like any other."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kview.config.security import PLAINTEXT
from kview.errors import ErrorKind, KviewError
from kview.lab.child import SimulatedCluster
from kview.model.inspection import A, Question
from kview.model.lab import ActiveFault, Command, CommandKind, LabSettings, Reply
from kview.model.snapshot import Snapshot
from kview.run import inspecting
from kview.run.observing import ConnectedSource, SourceEnded, SourceReplaced

if TYPE_CHECKING:
    from kview.lab.client import ControlClient


class SimulatedSource:
    """Observes a simulated cluster, and starts the cluster again if it dies.

    Implements `Source`, `Attention`, `Inspector` and `Lab`. The first child process starts at once,
    so that it gets ready while the dashboard draws its first frame.
    """

    def __init__(self, arguments: Sequence[str], interval_s: float, with_records: bool = True) -> None:
        self._with_records = with_records
        self._arguments = arguments
        self._interval_s = interval_s
        self._starting = threading.Lock()
        self._closed = False
        self._cluster: SimulatedCluster | None = SimulatedCluster(arguments)
        self._lab: ControlClient | None = None
        self._observer: ConnectedSource | None = None
        self._preferred: frozenset[tuple[str, int]] = frozenset()
        self._wanted = 0
        """The number of the cluster that was asked for last."""
        self.connected = 0
        """The number of the cluster that is connected, from 0."""

    @property
    def pid(self) -> int:
        """The process id of the running cluster. Raises SourceEnded if no cluster is running."""
        if self._cluster is None:
            raise SourceEnded(KviewError(ErrorKind.CLUSTER_ENDED).facts)
        return self._cluster.pid

    def connect(self) -> None:
        """Start the cluster if it is not running, and connect to it. Raises KviewError.

        An earlier connection is closed first.
        """
        from kview.lab.client import ControlClient

        with self._starting:
            if self._closed:
                raise SourceEnded(KviewError(ErrorKind.CLUSTER_ENDED).facts)
            number, arguments = self._wanted, self._arguments
            cluster = self._cluster = self._cluster or SimulatedCluster(arguments)
        servers, security = cluster.bootstrap_servers(), PLAINTEXT
        if cluster.client_file is not None:
            from kview.config.client_properties import read_client_properties

            security = read_client_properties(cluster.client_file, {}).security
        earlier, self._observer = self._observer, None
        if earlier is not None:
            earlier.close()
        self._observer = ConnectedSource(servers, self._interval_s, security, with_records=self._with_records)
        self._observer.connect()
        # The client gets its own descriptor, because this thread must not close one that an event loop
        # watches. A second client of the same cluster would lose its answers to the first.
        self._lab = self._lab or ControlClient(cluster.control.dup())
        self.connected = number

    def restart(self, arguments: Sequence[str]) -> int:
        """Replace the cluster by a fresh one with these flags, at the next observation.

        Returns the fresh cluster's number, which `connected` has once it is observed.
        """
        with self._starting:
            self._arguments = arguments
            self._wanted += 1
            return self._wanted

    def observe(self) -> Snapshot:
        """Observe the cluster once.

        Raises SourceEnded if its process has ended, and SourceReplaced if another cluster was asked for.
        """
        if self._wanted != self.connected:
            self._drop()
            raise SourceReplaced
        assert self._cluster is not None and self._observer is not None
        how = self._cluster.ended()
        if how is not None:
            self._drop()
            raise SourceEnded(how.facts)
        self._observer.prefer(self._preferred)
        return self._observer.observe()

    def dismiss(self, broker: int) -> None:
        """Remove the row of a broker that the cluster no longer lists."""
        observer = self._observer
        if observer is not None:
            observer.dismiss(broker)

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions in every observation, from the next one on.

        This also applies after the cluster is restarted.
        """
        self._preferred = frozenset(partitions)

    @property
    def reads_records(self) -> bool:
        """Whether records may be read at all."""
        return self._with_records

    async def ask(self, question: Question[A]) -> A:
        """Return the cluster's answer. Never raises."""
        if self._observer is None:
            return await inspecting.ask(None, question)
        return await self._observer.ask(question)

    async def apply(self, command: Command) -> Reply:
        """Carry out a command. Never raises."""
        if self._lab is None:
            return Reply(refused=KviewError(ErrorKind.CLUSTER_STARTING).facts)
        reply, observer = await self._lab.apply(command), self._observer
        if command.kind in (CommandKind.SET, CommandKind.UNSET) and observer is not None:
            observer.read_again(command.name)
        return reply

    async def active(self) -> tuple[ActiveFault, ...] | None:
        """Return the faults in force, or None if the cluster does not say. Never raises."""
        return None if self._lab is None else await self._lab.active()

    async def settings_now(self) -> LabSettings | None:
        """Return what is set and can be adjusted, or None if the cluster does not say. Never raises."""
        return None if self._lab is None else await self._lab.settings_now()

    async def counters(self) -> Mapping[str, Any] | None:
        """Return what the cluster counts, or None if it does not say. Never raises."""
        try:
            return None if self._lab is None else (await self._lab.counters()).counters
        except KviewError:
            return None

    def close(self) -> None:
        """End the cluster and close the connections to it."""
        with self._starting:
            self._closed = True
        self._drop()

    def _drop(self) -> None:
        observer, self._observer = self._observer, None
        cluster, self._cluster = self._cluster, None
        self._lab = None
        if cluster is not None:
            cluster.end()
        if observer is not None:
            observer.close()
