"""Columns kept from past observations, thinned out with age.

Recent observations are kept close together, older ones further apart.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from msgspec import Struct


class Dated(Protocol):
    """Something that was observed at a known time."""

    @property
    def at_ms(self) -> int:
        """Epoch ms of the observation."""
        ...


Layer = TypeVar("Layer", bound=Dated)


class Thinning(Struct, frozen=True):
    """Keeps one layer per `bucket_ms` of absolute time for layers younger than `age_ms`.

    The last layer of a bucket is kept. Buckets nest, because each width divides the next. So which layers
    remain depends only on the layers of the last `age_ms`, not on when kview began to watch.
    """

    steps: tuple[tuple[int, int], ...]
    """Pairs of (age_ms, bucket_ms), the youngest first."""

    def bucket(self, age_ms: int) -> int | None:
        """Return the width of the bucket at an age, None if the age is too great."""
        return next((bucket for limit, bucket in self.steps if age_ms < limit), None)


def thinned(layers: tuple[Layer, ...], now_ms: int, rule: Thinning) -> tuple[Layer, ...]:
    """Return `layers` (oldest first) without the layers that the rule drops."""
    kept: list[Layer] = []
    following = None
    for layer in reversed(layers):
        width = rule.bucket(now_ms - layer.at_ms)
        if width is None:
            break
        if following is None or following // width != layer.at_ms // width:
            kept.append(layer)
        following = layer.at_ms
    return tuple(reversed(kept))


def each(layers: tuple[Layer, ...], change: Callable[[Layer], Layer]) -> tuple[Layer, ...]:
    """Return the layers with `change` applied to each."""
    return tuple(change(layer) for layer in layers)
