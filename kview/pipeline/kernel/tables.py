"""The tables of a batch of roll-ups: their names and their columns."""

import pyarrow as pa

from kview.model.sums import SUMS

SECONDS_TABLE, MINUTES_TABLE = "seconds", "minutes"
"""The tables of a batch, besides those of facts."""

HOTTEST_SHIFT = 1 << 24
"""Partition numbers are below this, so that a rate and its partition fit into one integer."""

PEAK_SHIFT = 33
"""Epoch seconds are below two to this power, so that a rate and its second fit into one integer."""

SPREAD = ("records", "replicated", "cross_rack")
"""Figures that are spread over the seconds of their interval."""

AT_END = ("fell", "in_gap")
"""Figures that belong to the second in which their interval ended."""

STATES = ("offline", "silent", "under_min_isr", "under_replicated")

PRODUCTS = {
    "centibytes_in": "records",
    "replicated_centibytes": "replicated",
    "cross_rack_centibytes": "cross_rack",
}
"""Column of minutes → the figure that it multiplies by the size of a record."""

MINUTE_SUMS = (
    *("records_in", "centibytes_in", "replicated", "replicated_centibytes"),
    *("cross_rack", "cross_rack_centibytes", "active_ms", "truncated", "records_in_gap"),
    *(f"{name}_ms" for name in STATES),
)
"""The columns of minutes that add up."""

SECONDS = pa.schema(
    [
        ("second", pa.int64()),
        ("kind", pa.string()),
        ("name", pa.string()),
        *((str(name), pa.int64()) for name in SUMS),
        (
            "hottest",
            pa.struct([("rate", pa.int64()), ("topic", pa.string()), ("partition", pa.int32())]),
        ),
        ("topic_partitions", pa.int32()),
    ]
)
"""One row per second (epoch), kind and name. `hottest` is the highest rate of a single partition, null if
there is none."""

MINUTES = pa.schema(
    [
        ("slot", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("internal", pa.bool_()),
        *((name, pa.int64()) for name in MINUTE_SUMS),
        ("peak", pa.int64()),
    ]
)
"""One row per minute, topic and partition. `slot` is the epoch second at which the minute begins; at the end
of a batch, where seconds are not complete yet, a row is about the single second `slot`. `peak` is a rate <<
PEAK_SHIFT, with the second in which its interval began; null if nothing came in."""


def peak_of(peak: int) -> tuple[int, int]:
    """Return the rate and the epoch second of a peak."""
    return peak >> PEAK_SHIFT, peak & ((1 << PEAK_SHIFT) - 1)
