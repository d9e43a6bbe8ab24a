"""The differences between the simulated and the real cluster that are meant, each with its reason.

A difference that has gone must go from this list, too: the test compares the whole list.
"""

from collections.abc import Mapping

from tests.differential.comparing import Difference

EXPLAINED: Mapping[str, tuple[tuple[Difference, str], ...]] = {}
"""Script → its differences and why each is as it is."""
