"""The figures of one moment that are added to series."""

from msgspec import Struct

from kview.derive.groups.figures import GroupLags
from kview.derive.view import Floats, OffsetFigures


class Sample(Struct, frozen=True):
    """The figures of one moment that are added to series."""

    in_rate: Floats
    """The rates of partitions, with the rows of `Partitions`."""
    broker_rates: Floats
    topic_rates: Floats
    offsets: OffsetFigures
    groups: GroupLags
