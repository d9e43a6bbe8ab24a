"""The facts of a recording: what the fold concluded, as plain columns that other programs can sum and order.

Each part is a file of its own: `NAME.arrows` in an open segment, an Arrow IPC stream whose batches are the
rows that one observation adds, and `NAME.parquet` in a closed one. A part without rows has no file. Nobody
who reads snapshots or deltas reads these files.

In every part, `sequence` is the recording's own number of the observation that wrote the row, and
`observed_ms` is the epoch ms at which the row's interval ended. `interval_ms` is how long the row held until
then. It is 0 in a recording's first observation and over a gap, as `state_ms` of the partition deltas is. The
intervals of one group, and those of findings of one kind and group, never overlap, so they can be summed.
What is unknown is null, never 0.
"""

from collections.abc import Mapping

import pyarrow as pa

_MOMENT = [("sequence", pa.int64()), ("observed_ms", pa.int64())]

FINDINGS = pa.schema(
    [
        *_MOMENT,
        ("interval_ms", pa.int64()),
        ("kind", pa.string()),
        ("severity", pa.string()),
        ("broker", pa.int32()),
        ("brokers", pa.list_(pa.int32())),
        ("controllers", pa.list_(pa.int32())),
        ("rack", pa.string()),
        ("group", pa.string()),
        ("verdict", pa.string()),
        ("partitions", pa.int64()),
        ("internal_partitions", pa.int64()),
        ("groups", pa.int64()),
        ("count", pa.int64()),
        ("since_ms", pa.int64()),
        ("held_ms", pa.int64()),
    ]
)
"""The findings of each observation, one row per kind (FindingKind) and group. An observation without any row
was not folded: the calm finding that all is well is a row, too. Of more than 50 findings, the worst ones are
written; there are so many only if that many groups lost records, which GROUP_LAGS tells of each.

`broker` is the first of `brokers`, null if the finding names none, as `group` and `rack` are. `since_ms` is
when the finding began, and `held_ms` how long it had stood by `observed_ms`; null if that is not known."""

INCIDENTS = pa.schema(
    [
        *_MOMENT,
        ("id", pa.string()),
        ("kind", pa.string()),
        ("cause", pa.string()),
        ("severity", pa.string()),
        ("began_ms", pa.int64()),
        ("ended_ms", pa.int64()),
        ("over", pa.bool_()),
        ("end", pa.string()),
        ("brokers", pa.list_(pa.int32())),
        ("controllers", pa.list_(pa.int32())),
        ("racks", pa.list_(pa.string())),
        ("frozen_ms", pa.int64()),
        ("no_leader_ms", pa.int64()),
        ("fenced_ms", pa.int64()),
        ("fenced_all_ms", pa.int64()),
        ("elected_ms", pa.int64()),
        ("elected_all_ms", pa.int64()),
        ("moves_ms", pa.int64()),
        ("moves_all_ms", pa.int64()),
        ("back_ms", pa.int64()),
        ("back_all_ms", pa.int64()),
        ("isr_full_ms", pa.int64()),
        ("quorum_back_ms", pa.int64()),
        ("partitions", pa.int64()),
        ("internal_partitions", pa.int64()),
        ("moved", pa.int64()),
        ("leaderless", pa.int64()),
        ("gone", pa.int64()),
        ("gone_partitions", pa.int64()),
        ("waited_ms", pa.int64()),
        ("waiting", pa.bool_()),
        ("groups", pa.int64()),
        ("group_names", pa.list_(pa.string())),
    ]
)
"""The incidents, one row whenever one began, changed or ended, and one in the first observation of each
segment. The last row of an `id` is its whole story (kview.model.incidents.Incident).

`cause` is the kind of its first phase, `end` that of the phase that ended it. The stopwatches are ms since
`began_ms`: `X_ms` until the first partition or broker had reached the stage, `X_all_ms` until all of them
had; null as long as they have not. `gone` is a lower bound, and `waited_ms` an upper bound."""

ELECTIONS = pa.schema(
    [
        *_MOMENT,
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("internal", pa.bool_()),
        ("old_leader", pa.int32()),
        ("new_leader", pa.int32()),
        ("old_epoch", pa.int32()),
        ("new_epoch", pa.int32()),
        ("old_isr", pa.int32()),
        ("new_isr", pa.int32()),
        ("unclean", pa.bool_()),
    ]
)
"""The changes of leaders. A partition that loses its leader has a row without `new_leader`, and another one
once it is led again, whose `old_leader` is the last one that led it. `old_isr` and `new_isr` are the sizes of
the ISR before and after. `unclean` is null if that is not known; see kview.derive.elections."""

GROUP_LAGS = pa.schema(
    [
        *_MOMENT,
        ("interval_ms", pa.int64()),
        ("group", pa.string()),
        ("state", pa.string()),
        ("verdict", pa.string()),
        ("severity", pa.string()),
        ("lag", pa.int64()),
        ("lag_is_bound", pa.bool_()),
        ("behind_ms", pa.int64()),
        ("behind_is_bound", pa.bool_()),
        ("behind_is_estimate", pa.bool_()),
        ("lost", pa.int64()),
        ("worst_topic", pa.string()),
        ("worst_partition", pa.int32()),
    ]
)
"""The lag of each group, with a row when something about it changed, at least every 10 s, and when a segment
is closed. Everything in the row held for `interval_ms` until `observed_ms`, so sums over rows are exact. A
group that is gone has a last row, of no time, in which nothing is known. A segment that was killed lacks up
to the last 10 s of groups that did not change.

`lag` is in records, `behind_ms` in time. The worst partition is the one furthest behind in time, or if that
is not known, in records; null if no partition's lag is known."""

SIZES = pa.schema(
    [
        *_MOMENT,
        ("topic", pa.string()),
        ("internal", pa.bool_()),
        ("partitions", pa.int64()),
        ("replicas", pa.int64()),
        ("bytes", pa.int64()),
        ("bytes_are_bound", pa.bool_()),
        ("leader_bytes", pa.int64()),
        ("log_start", pa.int64()),
        ("log_end", pa.int64()),
        ("retention_ms", pa.int64()),
        ("retention_bytes", pa.int64()),
        ("cleanup_policy", pa.string()),
    ]
)
"""The sizes of topics, with a row for each topic whose sizes or settings changed, at most one a minute if
only sizes did, and one in the first observation of each segment that knows any.

`bytes` are those of all replicas, a lower bound if the size of some replica is not known; `leader_bytes` are
null if that of some leader is not. `log_start` and `log_end` are sums over the topic's partitions, null if
one of them is not known. The retention settings are Kafka's, with −1 for "no limit"; `retention_bytes` is per
partition."""

FACTS: Mapping[str, pa.Schema] = {
    "findings": FINDINGS,
    "incidents": INCIDENTS,
    "elections": ELECTIONS,
    "group_lags": GROUP_LAGS,
    "sizes": SIZES,
}
"""The parts of a segment that hold facts."""
