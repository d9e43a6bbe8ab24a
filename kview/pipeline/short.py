"""A quick way to the one-second roll-ups of many deltas at once, in Spark SQL.

Most deltas are about an interval of a partition that touches two seconds at most. The first of two seconds
gets the rounded share, and the second one the rest, which is what the largest-remainder method of
`kview.pipeline.rollup` comes to. So these deltas are summed up by the second in which they begin, and the
sums are split. All others take the long way.
"""

from collections.abc import Mapping, Sequence

from kview.pipeline.minutes import PLAIN
from kview.pipeline.rollup import HOTTEST_SHIFT, INTERNAL, Part

_SPREAD = ("records", "replicated", "cross_rack")

_IS_SHORT = f"{PLAIN} and ended_ms div 1000 <= began_ms div 1000 + 1"


def is_short(set_backs: Sequence[tuple[int, int]]) -> str:
    """Return SQL for whether a row of DELTAS is only about such an interval, and counts as a whole.

    For each (sequence, second) of `set_backs`, observations before that sequence do not count from that
    second on.
    """
    whole = [f"(sequence >= {sequence} or ended_ms div 1000 < {second})" for sequence, second in set_backs]
    return f"coalesce({' and '.join([_IS_SHORT, *whole])}, false)"


_SPANS = f"""
    select sequence, observed_ms, topic, leader, leader_rack, topic_partitions,
        coalesce(internal, topic in ({INTERNAL})) as internal,
        began_ms div 1000 as second, ended_ms div 1000 > began_ms div 1000 as two,
        ended_ms % 1000 > 0 as goes_on,
        least(ended_ms, began_ms div 1000 * 1000 + 1000) - began_ms as part_ms,
        ended_ms - began_ms as length_ms, coalesce(record_centibytes, 0) as record_centibytes,
        if(records > 0, records * 1000 div (ended_ms - began_ms) * {HOTTEST_SHIFT} + partition, null) as heat,
        {", ".join(f"coalesce({name}, 0) as {name}" for name in _SPREAD)}
    from {{short}}"""

_SHARES = f"""
    select *, {", ".join(f"({n} * 2 * part_ms + length_ms) div (2 * length_ms) as {n}_1" for n in _SPREAD)}
    from ({_SPANS})"""

# Column → the SQL expressions that it sums up: of both seconds, and of the first one.
_SUMS = {
    **{name: (name, f"{name}_1") for name in _SPREAD},
    "centibytes": ("records * record_centibytes", "records_1 * record_centibytes"),
    "active_ms": ("if(records > 0, length_ms, 0)", "if(records > 0, part_ms, 0)"),
}

# Column → aggregate and value in both seconds. A null leaves the second one out.
_EDGES = {
    "hottest": ("max", "heat", "if(two and goes_on, heat, null)"),
    "topic_partitions": ("max", "topic_partitions", "if(two, topic_partitions, null)"),
    "last_sequence": ("max", "sequence", "if(two, sequence, null)"),
    "first_ms": ("min", "observed_ms", "if(two, observed_ms, null)"),
    "last_ms": ("max", "observed_ms", "if(two, observed_ms, null)"),
}

BY_TOPIC = f"""
    select second, topic, leader, leader_rack, internal, max(two) as two,
        {", ".join(f"sum({v}) as {name}, sum({v1}) as {name}_1" for name, (v, v1) in _SUMS.items())},
        {", ".join(f"{how}({v}) as {n}_1, {how}({v2}) as {n}_2" for n, (how, v, v2) in _EDGES.items())}
    from ({_SHARES})
    group by second, topic, leader, leader_rack, internal"""
"""Sums of short rows, `{{short}}`, by the second in which they begin. Columns with `_1` are about this
second, those with `_2` about the next one, and the others about both."""

_OF_EDGES = [(name, how) for name, (how, *_) in _EDGES.items() if name != "hottest"]

_TOTALS = f"""
        {", ".join(f"sum({name}) as {name}, sum({name}_1) as {name}_1" for name in _SUMS)},
        {", ".join(f"{how}({n}_{i}) as {n}_{i}" for n, how in _OF_EDGES for i in (1, 2))}"""


def _place(number: int) -> str:
    hot = f"hottest_{number}"
    return f"""max(if({hot} is null, null, named_struct('rate', {hot} div {HOTTEST_SHIFT}, 'topic', topic,
             'partition', {hot} % {HOTTEST_SHIFT})))"""


_BY_TOPIC_ONLY = f"""
    select second, topic, internal, max(two) as two, {_TOTALS},
        max(hottest_1) as hottest_1, max(hottest_2) as hottest_2
    from {{by_topic}}
    group by second, topic, internal"""

_BY_LEADER = f"""
    select second, leader, leader_rack, internal, max(two) as two, {_TOTALS},
        {_place(1)} as place_1, {_place(2)} as place_2
    from {{by_topic}}
    group by second, leader, leader_rack, internal"""

_OTHERS = ("fell", "in_gap", "offline_ms", "silent_ms", "under_min_isr_ms", "under_replicated_ms")


def _split(part: Part, named: Mapping[str, str], hottest: Mapping[str, str], table: str) -> str:
    """Return SQL for each second of a table in a row of its own: the columns that `KEYED` adds up.

    `named` has the expressions of the key, and `hottest` those of the second's `topic` and `hottest`.
    """
    seconds = []
    for number in (1, 2):
        values = {"second": f"second + {number - 1}"}
        values |= {name: f"{name}_1" if number == 1 else f"{name} - {name}_1" for name in _SUMS}
        values |= {name: f"{name}_{number}" for name in _EDGES}
        values |= {name: value.format(number) for name, value in hottest.items()}
        fields = ", ".join(f"'{name}', {value}" for name, value in values.items())
        seconds.append(f"named_struct({fields})")
    columns = ("second", "topic", *_SUMS, *_EDGES)
    return f"""
    select '{part}' as part, {", ".join(f"{value} as {name}" for name, value in named.items())},
        cast(null as string) as group, internal,
        {", ".join(f"its.{name} as {name}" for name in columns)},
        {", ".join(f"cast(0 as bigint) as {name}" for name in _OTHERS)}
    from (
        select *, explode(if(two, array({seconds[0]}, {seconds[1]}), array({seconds[0]}))) as its
        from ({table}))"""


SPLIT = f"""
    {
    _split(
        Part.TOPIC,
        {"leader": "-1", "leader_rack": "cast(null as string)"},
        {"topic": "topic", "hottest": "hottest_{0}"},
        _BY_TOPIC_ONLY,
    )
}
    union all
    {
    _split(
        Part.LEADER,
        {"leader": "leader", "leader_rack": "leader_rack"},
        {
            "topic": "place_{0}.topic",
            "hottest": f"place_{{0}}.rate * {HOTTEST_SHIFT} + place_{{0}}.partition",
        },
        _BY_LEADER,
    )
}"""
"""BY_TOPIC, `{{by_topic}}`, by topic and by leader, with the columns that `kview.pipeline.rollup.KEYED` adds
up. Both read the same columns, so Spark calculates BY_TOPIC once."""
