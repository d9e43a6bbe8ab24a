"""Columns kept from past observations, thinned: close together lately, further apart long ago."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar


class Dated(Protocol):
    """Something that was taken at a moment."""

    @property
    def at_ms(self) -> int:
        """Epoch ms of the observation."""
        ...


Layer = TypeVar("Layer", bound=Dated)


@dataclass(frozen=True, slots=True)
class Thinning:
    """Of layers younger than `age_ms`, one in each `bucket_ms` of absolute time is kept: its last.

    Buckets nest (each width divides the next), so that which layers are left depends on the layers of the
    last `age_ms` alone, not on when watching began.
    """

    steps: tuple[tuple[int, int], ...]
    """(age_ms, bucket_ms), the youngest first."""

    def bucket(self, age_ms: int) -> int | None:
        """The bucket's width at an age; None when it is too old."""
        return next((bucket for limit, bucket in self.steps if age_ms < limit), None)

    def at_most(self) -> int:
        """How many layers can be left."""
        limits = [0, *(limit for limit, _ in self.steps)]
        return sum(-(-(limit - limits[at]) // bucket) + 1 for at, (limit, bucket) in enumerate(self.steps))


def thinned(layers: tuple[Layer, ...], now_ms: int, rule: Thinning) -> tuple[Layer, ...]:
    """`layers` (oldest first) without those that the rule does not keep."""
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
    """The layers, each changed."""
    return tuple(change(layer) for layer in layers)
