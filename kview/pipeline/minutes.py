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
    kept = [f"(whole or second >= {head_s})"]
    kept += [f"(sequence >= {sequence} or second < {second})" for sequence, second in set_backs]
    return f"""
        select slot, topic, partition, first(internal) as internal,
            {", ".join(f"cast(sum({value}) as long) as {name}" for name, value in SUMMED.items())},
            max(peak) as peak
        from (
            select {_slot("second", tail_s)} as slot, topic, partition, internal, record_centibytes,
                {", ".join(f"if(whole, coalesce({n}, 0), {share(n)}) as {n}" for n in _SPREAD)},
                if(records > 0, if(whole, length_ms, overlap_ms), 0) as active_ms,
                if(whole or second = ended_ms div 1000, coalesce(fell, 0), 0) as fell,
                if(whole or second = ended_ms div 1000, coalesce(in_gap, 0), 0) as in_gap,
                {", ".join(f"if({n}, if(whole, state_ms, held_ms), 0) as {n}_ms" for n in _STATES)},
                if(records > 0 and (whole or overlap_ms > 0), (rate << {PEAK_SHIFT}) + first_s, null) as peak
            from (
                select *, {overlap("began_ms", "ended_ms")} as overlap_ms,
                    {overlap("held_from_ms", "observed_ms")} as held_ms
                from (
                    select *, explode(if(whole, array(from_s), sequence(from_s, to_s))) as second
                    from (
                        select *, {" and ".join(whole)} as whole
                        from ({BOUNDED})
                        where group is null and topic is not null)))
            where {" and ".join(kept)})
        group by slot, topic, partition"""


def _slot(second: str, tail_s: int) -> str:
    return f"if({second} >= {tail_s}, {second}, {second} div {BLOCK_S} * {BLOCK_S})"
