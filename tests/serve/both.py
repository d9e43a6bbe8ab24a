"""The simulated and the real cluster, as tests see them that are about both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.real_kafka.asking import Address

Create = Callable[[str, Sequence[Sequence[int]], Mapping[str, str]], None]


@dataclass(frozen=True)
class Cluster:
    """Three brokers. `at` returns the address of a broker."""

    bootstrap: str
    at: Callable[[int], Address]
    make: Create
    made: set[str] = field(default_factory=set)

    @property
    def leader(self) -> Address:
        """The address of broker 0, which leads the topics that tests create with replicas 0 and 1."""
        return self.at(0)

    @property
    def follower(self) -> Address:
        """The address of broker 1."""
        return self.at(1)

    def create(
        self, name: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic once. It is ready when all its replicas are in sync."""
        if name not in self.made:
            self.made.add(name)
            self.make(name, assignment, configs or {})
