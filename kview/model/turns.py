"""How often groups are read: very many of them in turn."""

GROUPS_AN_OBSERVATION = 5_000
"""Groups whose members and commits are requested per observation, from all coordinators together. If there
are more, they are read in turn: 15,000 groups with a dozen offsets each are 180,000 offsets."""


def rounds_of_groups(groups: int) -> int:
    """Return in how many observations all groups of a cluster are read."""
    return max(1, -(-groups // GROUPS_AN_OBSERVATION))
