"""The definition of the one-second roll-ups in Spark SQL, used by the live job and by batches.

The increase over an interval is split over the seconds of that interval, in proportion to the part of each
second that the interval covers. The shares are integers, rounded by the largest-remainder method (if two
remainders are equal, the earlier second gets more). So nothing is lost or invented, and the roll-ups of parts
add up to the roll-ups of everything.
"""

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from kview.model.aggregates import INTERNAL_TOPICS, SUMS, Kind, Sum

DELTAS = t.StructType(
    [
        t.StructField("sequence", t.LongType()),
        t.StructField("observed_ms", t.LongType()),
        t.StructField("group", t.StringType()),
        t.StructField("topic", t.StringType()),
        t.StructField("partition", t.IntegerType()),
        t.StructField("internal", t.BooleanType()),
        t.StructField("leader", t.IntegerType()),
        t.StructField("leader_rack", t.StringType()),
        t.StructField("topic_partitions", t.IntegerType()),
        t.StructField("began_ms", t.LongType()),
        t.StructField("ended_ms", t.LongType()),
        t.StructField("records", t.LongType()),
        t.StructField("fell", t.LongType()),
        t.StructField("in_gap", t.LongType()),
        t.StructField("record_centibytes", t.LongType()),
        t.StructField("replicated", t.LongType()),
        t.StructField("cross_rack", t.LongType()),
        t.StructField("state_ms", t.IntegerType()),
        t.StructField("offline", t.BooleanType()),
        t.StructField("silent", t.BooleanType()),
        t.StructField("under_min_isr", t.BooleanType()),
        t.StructField("under_replicated", t.BooleanType()),
    ]
)
"""A recording's deltas (kview.recording.schema) in one table: those of partitions, where `group` is null, and
those of groups' offsets, which have no columns after `in_gap`. `records` are incoming or outgoing, `fell` are
truncated or rewound. There is also one row per observation, with only the first two columns."""

NAMES_IN_DELTAS = {
    "since_ms": "began_ms",
    "records_in": "records",
    "records_out": "records",
    "truncated": "fell",
    "rewound": "fell",
    "records_in_gap": "in_gap",
    "records_out_gap": "in_gap",
}
"""Column name in a recording → column name in DELTAS, where the two differ."""

HOTTEST_SHIFT = 1 << 24
"""Partition numbers are below this, so that a rate and its partition fit into one integer."""

_SPREAD = ("records", "replicated", "cross_rack")
_STATES = ("offline", "silent", "under_min_isr", "under_replicated")


def rolled(deltas: DataFrame) -> DataFrame:
    """Return the roll-ups of rows of DELTAS: one row per second, kind and name.

    Columns: `second` (epoch), `kind`, `name`, those of `Sum`, `hottest` (rate, topic, partition; the highest
    rate of a single partition, null if there is none), `topic_partitions`, and from the observations included
    `last_sequence`, `first_ms`, `last_ms`.
    """
    return summed(pieces(deltas))


def pieces(deltas: DataFrame) -> DataFrame:
    """Return one row per delta and second that the delta touches, with the second's share of each figure.

    No state is kept between rows, so the query is the same for a stream.
    """
    return deltas.sparkSession.sql(PIECES, deltas=deltas)


def summed(pieces: DataFrame) -> DataFrame:
    """Return the roll-ups of `pieces`."""
    return pieces.sparkSession.sql(SUMMED, pieces=pieces)


def _remainders(name: str) -> str:
    """Return SQL for the remainders of splitting a number over its interval.

    There are three: for the first second, for any second in between, and for the last second. All full
    seconds have the same remainder, so no list of seconds has to be sorted.
    """
    return f"""
        {name},
        {name} * ((began_ms div 1000 + 1) * 1000 - began_ms) % (ended_ms - began_ms) as {name}_first,
        {name} * 1000 % (ended_ms - began_ms) as {name}_mid,
        {name} * ((ended_ms - 1) % 1000 + 1) % (ended_ms - began_ms) as {name}_last"""


def share(name: str) -> str:
    """Return SQL for one second's share of the increase over an interval, by the largest remainder.

    It needs the columns of BOUNDED, `second`, and `overlap_ms`: the overlap of the second and the interval.
    """
    first, mid, last = f"{name}_first", f"{name}_mid", f"{name}_last"
    return f"""case
        when {name} is null or {name} = 0 or overlap_ms = 0 then 0
        when first_s = last_s then {name}
        else {name} * overlap_ms div length_ms + if(
            case
                when second = first_s then if({mid} > {first}, between, 0) + if({last} > {first}, 1, 0)
                when second = last_s then if({first} >= {last}, 1, 0) + if({mid} >= {last}, between, 0)
                else second - first_s - 1 + if({first} >= {mid}, 1, 0) + if({last} > {mid}, 1, 0)
            end < ({first} + between * {mid} + {last}) div length_ms, 1, 0)
    end"""


def overlap(began_ms: str, ended_ms: str) -> str:
    """Return SQL for the number of ms of a second that are in an interval."""
    return f"greatest(least({ended_ms}, second * 1000 + 1000) - greatest({began_ms}, second * 1000), 0)"


_INTERNAL = ", ".join(f"'{name}'" for name in INTERNAL_TOPICS)

_SPANS = f"""
    select sequence, observed_ms, group, topic, partition, leader, leader_rack, topic_partitions,
        coalesce(internal, topic in ({_INTERNAL})) as internal,
        began_ms, ended_ms, fell, in_gap, record_centibytes, offline, silent, under_min_isr, under_replicated,
        state_ms, observed_ms - coalesce(state_ms, 0) as held_from_ms,
        coalesce(records, 0) + coalesce(replicated, 0) + coalesce(fell, 0) + coalesce(in_gap, 0) > 0
            as counted,
        coalesce(state_ms, 0) > 0 as held,
        ended_ms - began_ms as length_ms,
        began_ms div 1000 as first_s,
        (greatest(ended_ms, began_ms + 1) - 1) div 1000 as last_s,
        greatest((ended_ms - 1) div 1000 - began_ms div 1000 - 1, 0) as between,
        records * 1000 div (ended_ms - began_ms) as rate,
        {", ".join(_remainders(name) for name in _SPREAD)}
    from {{deltas}}"""

# A delta without an interval belongs to the second in which it was seen.
_FROM_S = """coalesce(least(if(counted, first_s, null), if(held, held_from_ms div 1000, null)),
            observed_ms div 1000)"""
_TO_S = """coalesce(greatest(
            if(counted, ended_ms div 1000, null), if(held, (observed_ms - 1) div 1000, null)),
            observed_ms div 1000)"""

_SECONDS = f"""
    select *, explode(sequence({_FROM_S}, {_TO_S})) as second
    from ({_SPANS})"""

BOUNDED = f"""
    select *, {_FROM_S} as from_s, {_TO_S} as to_s
    from ({_SPANS})"""
"""Rows of DELTAS with the first and the last second that they touch, and what `share` and `overlap` need."""

_OVERLAPS = f"""
    select *, {overlap("began_ms", "ended_ms")} as overlap_ms,
        {overlap("held_from_ms", "observed_ms")} as held_ms
    from ({_SECONDS})"""

PIECES = f"""
    select second, topic, leader, leader_rack, group, internal, sequence, observed_ms, topic_partitions,
        {", ".join(f"{share(name)} as {name}" for name in _SPREAD)},
        record_centibytes,
        if(records > 0, overlap_ms, 0) as active_ms,
        if(second = ended_ms div 1000, coalesce(fell, 0), 0) as fell,
        if(second = ended_ms div 1000, coalesce(in_gap, 0), 0) as in_gap,
        {", ".join(f"if({name}, held_ms, 0) as {name}_ms" for name in _STATES)},
        if(records > 0 and overlap_ms > 0, rate * {HOTTEST_SHIFT} + partition, null) as hottest
    from ({_OVERLAPS})"""

# Each row counts for several keys. Summing by topic, leader and group first leaves few rows to multiply.
_BY_TOPIC = f"""
    select second, topic, leader, leader_rack, group, internal,
        sum(records) as records, sum(records * record_centibytes) as centibytes,
        sum(replicated) as replicated, sum(cross_rack) as cross_rack, sum(active_ms) as active_ms,
        sum(fell) as fell, sum(in_gap) as in_gap,
        {", ".join(f"sum({name}_ms) as {name}_ms" for name in _STATES)},
        max(hottest) as hottest, max(topic_partitions) as topic_partitions,
        max(sequence) as last_sequence, min(observed_ms) as first_ms, max(observed_ms) as last_ms
    from {{pieces}}
    group by second, topic, leader, leader_rack, group, internal"""

_NAMES = {
    Kind.CLUSTER: "if(internal, null, '')",
    Kind.INTERNAL: "if(internal, '', null)",
    Kind.TOPIC: "topic",
    Kind.BROKER: "if(internal or leader < 0, null, cast(leader as string))",
    Kind.RACK: "if(internal or leader < 0, null, leader_rack)",
    Kind.GROUP: "group",
}
"""The name under which a delta counts for each kind, null if it does not count for that kind. The row of an
observation has no topic and counts for the cluster, with zeros."""

_KEYS = ", ".join(f"named_struct('kind', '{kind}', 'name', {name})" for kind, name in _NAMES.items())

_COLUMNS = {
    Sum.RECORDS_IN: "if(group is null, records, 0)",
    Sum.CENTIBYTES_IN: "coalesce(centibytes, 0)",
    Sum.REPLICATED: "replicated",
    Sum.CROSS_RACK: "cross_rack",
    Sum.RECORDS_OUT: "if(group is null, 0, records)",
    Sum.ACTIVE_MS: "if(group is null, active_ms, 0)",
    Sum.TRUNCATED: "if(group is null, fell, 0)",
    Sum.RECORDS_IN_GAP: "if(group is null, in_gap, 0)",
    Sum.REWOUND: "if(group is null, 0, fell)",
    Sum.RECORDS_OUT_GAP: "if(group is null, 0, in_gap)",
    **{Sum(f"{name}_ms"): f"{name}_ms" for name in _STATES},
}
"""Sum → the SQL expression whose values it adds up."""

SUMMED = f"""
    select second, key.kind, key.name,
        {", ".join(f"cast(sum({_COLUMNS[column]}) as long) as {column}" for column in SUMS)},
        max(if((key.kind = '{Kind.GROUP}') = (group is not null) and hottest is not null,
            named_struct('rate', hottest div {HOTTEST_SHIFT}, 'topic', topic,
                'partition', cast(hottest % {HOTTEST_SHIFT} as int)), null)) as hottest,
        max(if(key.kind = '{Kind.TOPIC}', topic_partitions, null)) as topic_partitions,
        max(last_sequence) as last_sequence, min(first_ms) as first_ms, max(last_ms) as last_ms
    from (select *, explode(array({_KEYS})) as key from ({_BY_TOPIC}))
    where key.name is not null
    group by second, key.kind, key.name"""
