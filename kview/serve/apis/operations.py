"""The operations that a client may do with a topic, a group or the cluster, as bit fields.

A broker without an authorizer allows all operations that a kind of resource has. Sources: Kafka's AclEntry
and AclOperation.
"""

from enum import IntEnum


class AclOperation(IntEnum):
    """An operation, with its number in the protocol."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


_CONFIGS = {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
OF_TOPIC = frozenset(
    {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    }
)
OF_GROUP = frozenset({AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS})
OF_CLUSTER = frozenset(
    {
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.IDEMPOTENT_WRITE,
        *_CONFIGS,
    }
)

NOT_ASKED = -(1 << 31)
"""The bit field of a client that did not ask for the operations."""


def bits(operations: frozenset[AclOperation]) -> int:
    """Return operations as a bit field."""
    return sum(1 << operation for operation in operations)
