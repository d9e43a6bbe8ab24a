"""The roll-ups of `kview.pipeline.kernel` as SQL for DuckDB, the peer of `bench_report.py`."""

from kview.model.sums import INTERNAL_TOPICS, SUMS, Kind, Sum
from kview.pipeline.kernel.tables import HOTTEST_SHIFT, MINUTE_SUMS, PEAK_SHIFT, PRODUCTS, SPREAD, STATES


def _remainders(name: str) -> str:
    """The remainders of splitting a number over its interval: for the first second, for any in between, and
    for the last."""
    return f"""
        {name},
        {name} * ((began_ms // 1000 + 1) * 1000 - began_ms) % (ended_ms - began_ms) as {name}_first,
        {name} * 1000 % (ended_ms - began_ms) as {name}_mid,
        {name} * ((ended_ms - 1) % 1000 + 1) % (ended_ms - began_ms) as {name}_last"""


def _share(name: str) -> str:
    """One second's share of the increase over an interval, by the largest remainder."""
    first, mid, last = f"{name}_first", f"{name}_mid", f"{name}_last"
    return f"""case
        when {name} is null or {name} = 0 or overlap_ms = 0 then 0
        when first_s = last_s then {name}
        else {name} * overlap_ms // length_ms + if(
            case
                when second = first_s then if({mid} > {first}, between_s, 0) + if({last} > {first}, 1, 0)
                when second = last_s then if({first} >= {last}, 1, 0) + if({mid} >= {last}, between_s, 0)
                else second - first_s - 1 + if({first} >= {mid}, 1, 0) + if({last} > {mid}, 1, 0)
            end < ({first} + between_s * {mid} + {last}) // length_ms, 1, 0)
    end"""


def _overlap(began_ms: str, ended_ms: str) -> str:
    return f"greatest(least({ended_ms}, second * 1000 + 1000) - greatest({began_ms}, second * 1000), 0)"


_INTERNAL = ", ".join(f"'{name}'" for name in INTERNAL_TOPICS)

# A delta without an interval belongs to the second in which it was seen.
_BOUNDED = f"""
    select *,
        coalesce(least(if(counted, first_s, null), if(held, held_from_ms // 1000, null)),
            observed_ms // 1000) as from_s,
        coalesce(greatest(if(counted, ended_ms // 1000, null), if(held, (observed_ms - 1) // 1000, null)),
            observed_ms // 1000) as to_s
    from (
        select * replace (coalesce(internal, topic in ({_INTERNAL})) as internal),
            observed_ms - coalesce(state_ms, 0) as held_from_ms,
            coalesce(records, 0) + coalesce(replicated, 0) + coalesce(fell, 0) + coalesce(in_gap, 0) > 0
                as counted,
            coalesce(state_ms, 0) > 0 as held,
            ended_ms - began_ms as length_ms,
            began_ms // 1000 as first_s,
            (greatest(ended_ms, began_ms + 1) - 1) // 1000 as last_s,
            greatest((ended_ms - 1) // 1000 - began_ms // 1000 - 1, 0) as between_s,
            records * 1000 // (ended_ms - began_ms) as rate,
            {", ".join(f"{_remainders(name)}" for name in SPREAD)}
        from (select * exclude (records, replicated, cross_rack), records, replicated, cross_rack
            from {{deltas}}))"""

_SPLIT = f"""
    select *, {_overlap("began_ms", "ended_ms")} as overlap_ms,
        {_overlap("held_from_ms", "observed_ms")} as held_ms
    from ({{rows}})"""

PIECES = f"""
    select second, topic, leader, leader_rack, "group", internal, topic_partitions, record_centibytes,
        {", ".join(f"{_share(name)} as {name}" for name in SPREAD)},
        if(records > 0, overlap_ms, 0) as active_ms,
        if(second = ended_ms // 1000, coalesce(fell, 0), 0) as fell,
        if(second = ended_ms // 1000, coalesce(in_gap, 0), 0) as in_gap,
        {", ".join(f"if({name}, held_ms, 0) as {name}_ms" for name in STATES)},
        if(records > 0 and overlap_ms > 0, rate * {HOTTEST_SHIFT} + "partition", null) as hottest
    from ({
    _SPLIT.format(
        rows="select *, unnest(generate_series(from_s, to_s)) as second from (" + _BOUNDED + ")"
    ).format(deltas="deltas")
})"""
"""One row per row of deltas and second that it touches, with the second's share of each figure."""

_BY_TOPIC = f"""
    select second, topic, leader, leader_rack, "group", internal,
        sum(records) as records, sum(records * record_centibytes) as centibytes,
        sum(replicated) as replicated, sum(cross_rack) as cross_rack, sum(active_ms) as active_ms,
        sum(fell) as fell, sum(in_gap) as in_gap,
        {", ".join(f"sum({name}_ms) as {name}_ms" for name in STATES)},
        max(hottest) as hottest, max(topic_partitions) as topic_partitions
    from pieces
    group by second, topic, leader, leader_rack, "group", internal"""

_NAMES = {
    Kind.CLUSTER: "if(internal, null, '')",
    Kind.INTERNAL: "if(internal, '', null)",
    Kind.TOPIC: "topic",
    Kind.BROKER: "if(internal or leader < 0, null, leader::varchar)",
    Kind.RACK: "if(internal or leader < 0, null, leader_rack)",
    Kind.GROUP: '"group"',
}

_KEYS = ", ".join(f"struct_pack(kind := '{kind}', name := {name})" for kind, name in _NAMES.items())

_COLUMNS = {
    Sum.RECORDS_IN: 'if("group" is null, records, 0)',
    Sum.CENTIBYTES_IN: "coalesce(centibytes, 0)",
    Sum.REPLICATED: "replicated",
    Sum.CROSS_RACK: "cross_rack",
    Sum.RECORDS_OUT: 'if("group" is null, 0, records)',
    Sum.ACTIVE_MS: 'if("group" is null, active_ms, 0)',
    Sum.TRUNCATED: 'if("group" is null, fell, 0)',
    Sum.RECORDS_IN_GAP: 'if("group" is null, in_gap, 0)',
    Sum.REWOUND: 'if("group" is null, 0, fell)',
    Sum.RECORDS_OUT_GAP: 'if("group" is null, 0, in_gap)',
    **{Sum(f"{name}_ms"): f"{name}_ms" for name in STATES},
}

SECONDS = f"""
    select second, key.kind, key.name,
        {", ".join(f"sum({_COLUMNS[column]})::bigint as {column}" for column in SUMS)},
        max(if((key.kind = '{Kind.GROUP}') = ("group" is not null) and hottest is not null,
            struct_pack(rate := hottest // {HOTTEST_SHIFT}, topic := topic,
                "partition" := (hottest % {HOTTEST_SHIFT})::int), null)) as hottest,
        max(if(key.kind = '{Kind.TOPIC}', topic_partitions, null)) as topic_partitions
    from (select *, unnest(list_value({_KEYS})) as key from ({_BY_TOPIC}))
    where key.name is not null
    group by second, key.kind, key.name"""
"""One-second roll-ups of `pieces`."""

_FIGURES = {
    "records_in": "records",
    "truncated": "fell",
    "records_in_gap": "in_gap",
    **{name: f"{of} * record_centibytes" for name, of in PRODUCTS.items()},
}


def _slot(second: str, tail_s: int) -> str:
    return f"if({second} >= {tail_s}, {second}, {second} // 60 * 60)"


def minutes(head_s: int, tail_s: int) -> str:
    """Return the SQL of one-minute roll-ups of `partition_deltas`. Most intervals lie within a minute: their
    figures count as a whole, without being split into seconds first."""
    whole = f"from_s >= {head_s} and {_slot('from_s', tail_s)} = {_slot('to_s', tail_s)}"
    rows = f"""
        select *, unnest(if(whole, list_value(from_s), generate_series(from_s, to_s))) as second
        from (select *, {whole} as whole from ({_BOUNDED.format(deltas="partition_deltas")}))"""
    return f"""
        select slot, topic, "partition", first(internal) as internal,
            {", ".join(f"sum({_FIGURES.get(name, name)})::bigint as {name}" for name in MINUTE_SUMS)},
            max(peak) as peak
        from (
            select {_slot("second", tail_s)} as slot, topic, "partition", internal, record_centibytes,
                {", ".join(f"if(whole, coalesce({n}, 0), {_share(n)}) as {n}" for n in SPREAD)},
                if(records > 0, if(whole, length_ms, overlap_ms), 0) as active_ms,
                if(whole or second = ended_ms // 1000, coalesce(fell, 0), 0) as fell,
                if(whole or second = ended_ms // 1000, coalesce(in_gap, 0), 0) as in_gap,
                {", ".join(f"if({n}, if(whole, state_ms, held_ms), 0) as {n}_ms" for n in STATES)},
                if(records > 0 and (whole or overlap_ms > 0), (rate << {PEAK_SHIFT}) + first_s, null) as peak
            from ({_SPLIT.format(rows=rows)})
            where whole or second >= {head_s})
        group by slot, topic, "partition\""""
