"""The partitions that have changed, which the invariants in tests/simulate check."""

from collections.abc import Iterable

from kview.simulate.metadata import TopicPartition


class Touched:
    """The partitions that have changed since `keys` was emptied. `keys` is None if nobody checks them."""

    __slots__ = ("keys",)

    def __init__(self) -> None:
        self.keys: dict[TopicPartition, None] | None = None

    def add(self, key: TopicPartition) -> None:
        """Note that a partition has changed."""
        if self.keys is not None:
            self.keys[key] = None

    def update(self, keys: Iterable[TopicPartition]) -> None:
        """Note that these partitions have changed."""
        if self.keys is not None:
            self.keys.update(dict.fromkeys(keys))
