"""The definition of the one-minute roll-ups of partitions in Spark SQL.

They are sums of the same shares of the same seconds as the one-second roll-ups (`kview.pipeline.rollup`), so
that the partitions of a topic add up to the topic. Most intervals lie within a minute: their figures count as
a whole, without being split into seconds first.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from kview.model.aggregates import BLOCK_S
from kview.pipeline.rollup import BOUNDED, overlap, share

PEAK_SHIFT = 33
"""Epoch seconds are below two to this power, so that a rate and its second fit into one integer."""

_SPREAD = ("records", "replicated", "cross_rack")
_STATES = ("offline", "silent", "under_min_isr", "under_replicated")

SUMMED = {
    "records_in": "records",
    "centibytes_in": "records * record_centibytes",
    "replicated": "replicated",
    "replicated_centibytes": "replicated * record_centibytes",
    "cross_rack": "cross_rack",
    "cross_rack_centibytes": "cross_rack * record_centibytes",
    "active_ms": "active_ms",
    "truncated": "fell",
    "records_in_gap": "in_gap",
    **{f"{name}_ms": f"{name}_ms" for name in _STATES},
}
"""Column → the SQL expression that it sums up."""


def minutes(
    deltas: DataFrame, head_s: int, tail_s: int, set_backs: Sequence[tuple[int, int]] = ()
) -> DataFrame:
    """Return one row per minute, topic and partition of the rows of DELTAS that belong to partitions.

    Columns: `slot` (the epoch second at which the minute begins), `topic`, `partition`, `internal`, those of
    SUMMED, and `peak`: a rate << PEAK_SHIFT, with the second in which its interval began; null if nothing
    came in. Seconds before `head_s` are left out. From `tail_s` on, a row is about the single second `slot`,
    because those seconds are not complete yet. For each (sequence, second) of `set_backs`, observations
    before that sequence do not count from that second on.
    """
    return deltas.sparkSession.sql(query(head_s, tail_s, set_backs), deltas=deltas)


def query(head_s: int, tail_s: int, set_backs: Sequence[tuple[int, int]] = ()) -> str:
    """Return the SQL of `minutes`, which reads from `{deltas}`."""
    whole = [f"from_s >= {head_s}", f"{_slot('from_s', tail_s)} = {_slot('to_s', tail_s)}"]
    whole += [f"(sequence >= {sequence} or to_s < {second})" for sequence, second in set_backs]
    kept = [f"second >= {head_s}"]
    kept += [f"(sequence >= {sequence} or second < {second})" for sequence, second in set_backs]
    rows = f"""
        select *, {" and ".join(whole)} as whole
        from ({BOUNDED})
        where group is null and topic is not null"""
    within = f"""
        select {_slot("from_s", tail_s)} as slot, topic, partition, internal, record_centibytes,
            {", ".join(f"coalesce({name}, 0) as {name}" for name in _SPREAD)},
            if(records > 0, length_ms, 0) as active_ms, coalesce(fell, 0) as fell,
            coalesce(in_gap, 0) as in_gap, {", ".join(f"if({n}, state_ms, 0) as {n}_ms" for n in _STATES)},
            if(records > 0, {_PEAK}, null) as peak
        from ({rows})
        where whole"""
    across = f"""
        select {_slot("second", tail_s)} as slot, topic, partition, internal, record_centibytes,
            {", ".join(f"{share(name)} as {name}" for name in _SPREAD)},
            if(records > 0, overlap_ms, 0) as active_ms,
            if(second = ended_ms div 1000, coalesce(fell, 0), 0) as fell,
            if(second = ended_ms div 1000, coalesce(in_gap, 0), 0) as in_gap,
            {", ".join(f"if({name}, held_ms, 0) as {name}_ms" for name in _STATES)},
            if(records > 0 and overlap_ms > 0, {_PEAK}, null) as peak
        from (
            select *, {overlap("began_ms", "ended_ms")} as overlap_ms,
                {overlap("held_from_ms", "observed_ms")} as held_ms
            from (select *, explode(sequence(from_s, to_s)) as second from ({rows}) where not whole))
        where {" and ".join(kept)}"""
    # Rows that need not be split are most, and much less work without the code for the others.
    return f"""
        select slot, topic, partition, first(internal) as internal,
            {", ".join(f"sum({name}) as {name}" for name in SUMMED)}, max(peak) as peak
        from ({_summed(within)} union all {_summed(across)})
        group by slot, topic, partition"""


_PEAK = f"(rate << {PEAK_SHIFT}) + first_s"


def _summed(rows: str) -> str:
    return f"""
        select slot, topic, partition, first(internal) as internal,
            {", ".join(f"cast(sum({value}) as long) as {name}" for name, value in SUMMED.items())},
            max(peak) as peak
        from ({rows})
        group by slot, topic, partition"""


def _slot(second: str, tail_s: int) -> str:
    return f"if({second} >= {tail_s}, {second}, {second} div {BLOCK_S} * {BLOCK_S})"
