"""The operations that a client may do with a resource, as bit fields. Source: Kafka's AclOperation."""

from collections.abc import Iterable

from kview.simulate.acls import AclOperation

NOT_ASKED = -(1 << 31)
"""The bit field of a client that did not ask for the operations."""


def bits(operations: Iterable[AclOperation]) -> int:
    """Return operations as a bit field."""
    return sum(1 << operation for operation in operations)
