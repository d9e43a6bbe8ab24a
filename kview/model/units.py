"""Sentinels and units.

Offsets are int64, times are epoch milliseconds UTC, sizes are bytes. Unknown is never 0.
"""

UNKNOWN = -(2**63)
"""An int64 (offset, time, size, rate numerator) whose value is not known."""

UNKNOWN_ID = -(2**31)
"""A broker id or epoch (int32) that is not known. This is not the same as NO_BROKER."""

NO_BROKER = -1
"""Kafka's own value for "none": a partition without a leader, and the padding of replica matrices."""

CONNECTOR_TASK = -1
"""The number that Kafka Connect has for a connector itself, where it numbers its tasks."""

NO_PARTITION = -1
"""Stands for a topic of which no partition is meant, next to (topic, partition) pairs."""

NO_OFFSET = -1
"""Kafka's own value for "none": a group has committed nothing for a partition."""

NEVER = 2**62
"""A duration that means "never at this rate"."""
