"""Sentinels and units: offsets are int64, times are epoch milliseconds UTC, sizes are bytes, unknown is never
0."""

import math

UNKNOWN = -(2**63)
"""An int64 (offset, time, size, rate numerator) that nobody has told us."""

UNKNOWN_ID = -(2**31)
"""A broker id or epoch (int32) that nobody has told us; not the same as NO_BROKER."""

NO_BROKER = -1
"""Kafka's own word for "there is none": leader -1, and the padding of replica matrices."""

NO_OFFSET = -1
"""Kafka's own word for "there is none": a group that has committed nothing for a partition."""

NEVER = 2**62
"""A duration for "never at this rate"."""

PENDING = UNKNOWN + 1
"""A figure that needs the past, while the past of the moment shown is still being read."""

PENDING_RATE = -math.inf
"""The same for rates."""
