"""When retention removes a partition's first records."""

import pytest

from kview.derive.partitions.retention import Removal, RemovalKind, Retention, removal
from kview.model.units import NEVER, UNKNOWN

NOW, HOUR, GB = 1_760_000_000_000, 3_600_000, 10**9
NAN = float("nan")
BY_TIME, BY_SIZE, OVERDUE = RemovalKind.BY_TIME, RemovalKind.BY_SIZE, RemovalKind.OVERDUE
NOTHING, NOT_KNOWN = Removal(RemovalKind.NEVER), Removal(RemovalKind.NOT_KNOWN)


@pytest.mark.parametrize(
    ("kept", "first_ms", "size", "in_rate", "found"),
    [
        (
            Retention(24 * HOUR, NEVER, True, False),
            NOW - HOUR,
            UNKNOWN,
            NAN,
            Removal(BY_TIME, NOW + 23 * HOUR),
        ),
        (Retention(HOUR, NEVER, True, False), NOW - 2 * HOUR, GB, 5.0, Removal(OVERDUE)),
        (Retention(HOUR, NEVER, True, False), UNKNOWN, GB, 5.0, NOT_KNOWN),
        (Retention(UNKNOWN, NEVER, True, False), NOW, GB, 5.0, NOT_KNOWN),
        (Retention(NEVER, NEVER, True, False), NOW, GB, 5.0, NOTHING),
        (Retention(HOUR, GB, False, True), NOW, GB, 5.0, NOTHING),
        # A million records of 1,000 bytes each; 1,000 more per second fill the missing GB in 1,000 s.
        (Retention(NEVER, 2 * GB, True, False), NOW, GB, 1_000.0, Removal(BY_SIZE, NOW + 1_000_000)),
        (Retention(HOUR, 2 * GB, True, False), NOW, GB, 1_000.0, Removal(BY_SIZE, NOW + 1_000_000)),
        (Retention(HOUR, 2 * GB, True, False), NOW, GB, 1.0, Removal(BY_TIME, NOW + HOUR)),
        (Retention(NEVER, GB, True, False), NOW, GB, 0.0, Removal(OVERDUE)),
        (Retention(NEVER, 2 * GB, True, False), NOW, GB, 0.0, NOTHING),
        (Retention(HOUR, 2 * GB, True, False), NOW, UNKNOWN, 5.0, NOT_KNOWN),
        (Retention(HOUR, 2 * GB, True, False), NOW, GB, NAN, NOT_KNOWN),
    ],
)
def test_whichever_comes_first(
    kept: Retention, first_ms: int, size: int, in_rate: float, found: Removal
) -> None:
    assert removal(kept, first_ms, size, 1_000_000, in_rate, NOW) == found
