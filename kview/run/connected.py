"""`kview connect`, which observes an existing cluster."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kview.config.security import PLAINTEXT, Security
from kview.model.address import Address
from kview.model.inspection import A, Question
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.run import inspecting

if TYPE_CHECKING:
    from kview.observe.observer import Observer


class ConnectedSource:
    """Observes an existing cluster. Implements `Source`, `Attention` and `Inspector`.

    The observer is imported and created in `connect`, so that the first frame does not have to wait for it.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[Address],
        interval_s: float,
        security: Security = PLAINTEXT,
        reread: Callable[[], Security] | None = None,
        with_records: bool = True,
    ) -> None:
        """`reread` returns the security settings as their files have them now.

        Without `with_records`, no record is ever fetched.
        """
        self._with_records = with_records
        self._security = security
        self._reread = reread
        self._bootstrap_servers = tuple(bootstrap_servers)
        self._interval_s = interval_s
        self._observer: Observer | None = None
        self._preferred: frozenset[tuple[str, int]] = frozenset()
        self._asked_for = self._preferred
        """The preferred partitions that the observer already knows."""

    def connect(self) -> None:
        """Find the cluster. Raises ClusterUnreachable, or BadUse if a certificate cannot be used."""
        from kview.observe.observer import Observer, ObserveSettings

        settings = ObserveSettings(interval_s=self._interval_s)
        observer = Observer(
            self._bootstrap_servers,
            settings,
            security=self._security,
            reread=self._reread,
            with_records=self._with_records,
        )
        observer.connect()
        self._observer, self._asked_for = observer, frozenset()

    def observe(self) -> Snapshot:
        """Observe the cluster once. Failures are part of the snapshot."""
        assert self._observer is not None
        preferred = self._preferred
        if preferred is not self._asked_for:
            self._observer.prefer(preferred)
            self._asked_for = preferred
        return self._observer.observe()

    def dismiss(self, broker: int) -> None:
        """Remove the row of a broker that the cluster no longer lists."""
        observer = self._observer
        if observer is not None:
            observer.dismiss(broker)

    def read_again(self, topic: str) -> None:
        """Read a topic's settings in the next observation: somebody has changed them."""
        observer = self._observer
        if observer is not None:
            observer.read_again(topic)

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions in every observation, from the next one on."""
        self._preferred = frozenset(partitions)

    @property
    def reads_records(self) -> bool:
        """Whether records may be read at all."""
        return self._with_records

    async def ask(self, question: Question[A]) -> A:
        """Return the cluster's answer. Never raises."""
        return await inspecting.ask(self._observer, question)

    def close(self) -> None:
        """Close the connections."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.close()


def unused_properties(file: str, keys: Sequence[str]) -> tuple[Notice, ...]:
    """Return the notice about keys in a properties file that kview does not use, () if there are none."""
    if not keys:
        return ()
    return (Notice(NoticeKind.PROPERTIES_UNUSED, {"file": file, "keys": ", ".join(keys)}),)


def check_security(security: Security) -> None:
    """Read the certificates and the key. Raises BadUse if one of them cannot be used."""
    from kview.observe.access import access

    access(security)
