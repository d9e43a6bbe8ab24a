"""How many layers a thinning rule can keep."""

from kview.derive.history import Thinning


def at_most(rule: Thinning) -> int:
    """Return the limit: the full buckets of each step, and one that has begun."""
    limits = [0, *(limit for limit, _ in rule.steps)]
    return sum(-(-(limit - limits[at]) // bucket) + 1 for at, (limit, bucket) in enumerate(rule.steps))
