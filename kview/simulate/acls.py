"""Access control lists: what clients may do with topics, groups, transactional ids and the cluster.

Sources: Kafka's AclBindingFilter and ResourcePatternFilter.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

UNKNOWN, ANY = 0, 1
"""In each kind of number: one that this broker does not know, and a filter's for all of them."""


class AclOperation(IntEnum):
    """An operation, with its number in the protocol."""

    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """A kind of resource, with its number in the protocol."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's resource name is meant. MATCH is for filters only."""

    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Whether a rule denies or allows."""

    DENY = 2
    ALLOW = 3


_CONFIGS = {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
OPERATIONS: Mapping[ResourceType, frozenset[AclOperation]] = {
    ResourceType.TOPIC: frozenset(
        {
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            *_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset({AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS}),
    ResourceType.CLUSTER: frozenset(
        {
            AclOperation.CREATE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.IDEMPOTENT_WRITE,
            *_CONFIGS,
        }
    ),
}
"""The operations that a kind of resource has, as answers list them. Source: Kafka's AclEntry."""

CLUSTER_NAME = "kafka-cluster"
WILDCARD = "*"
EVERYBODY = "User:*"

IMPLYING = {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}),
}
"""Who may do one of these operations may do the one before the colon, too."""


class Acl(NamedTuple):
    """A rule. Numbers are the protocol's."""

    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    @property
    def has_unknown(self) -> bool:
        """Whether a number is UNKNOWN, which Kafka takes for a broken request."""
        return UNKNOWN in (self.resource, self.pattern, self.operation, self.permission)


class AclFilter(NamedTuple):
    """A filter of rules, in which a number may be ANY, and a text None. `pattern` may be MATCH."""

    resource: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @property
    def has_unknown(self) -> bool:
        """Whether a number is UNKNOWN, which Kafka takes for a broken request."""
        return UNKNOWN in (self.resource, self.pattern, self.operation, self.permission)

    def matches(self, acl: Acl) -> bool:
        """Return whether the filter selects a rule."""
        return (
            self.resource in (ANY, acl.resource)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern not in (ANY, PatternType.MATCH, acl.pattern):
            return False
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern != PatternType.MATCH:
            return False
        if acl.pattern == PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name == WILDCARD


class Acls:
    """All rules of a cluster, as part of its metadata. They never change."""

    def __init__(self, rules: Iterable[Acl] = ()) -> None:
        self._rules = dict.fromkeys(rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._rules)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._rules

    @cached_property
    def _of_pattern(self) -> dict[tuple[int, int, str], dict[str, list[Acl]]]:
        """The rules by (resource type, pattern type, name), and then by principal."""
        of_pattern: dict[tuple[int, int, str], dict[str, list[Acl]]] = {}
        for acl in self._rules:
            of_principal = of_pattern.setdefault((acl.resource, acl.pattern, acl.name), {})
            of_principal.setdefault(acl.principal, []).append(acl)
        return of_pattern

    @cached_property
    def _prefix_lengths(self) -> dict[int, list[int]]:
        """How long the names of prefixed rules are, by resource type."""
        lengths: dict[int, set[int]] = {}
        for acl in self._rules:
            if acl.pattern == PatternType.PREFIXED:
                lengths.setdefault(acl.resource, set()).add(len(acl.name))
        return {resource: sorted(each) for resource, each in lengths.items()}

    def about(self, resource: int, name: str) -> Iterator[dict[str, list[Acl]]]:
        """Yield the rules, by principal, of each pattern that a resource matches."""
        literal, prefixed = PatternType.LITERAL, PatternType.PREFIXED
        keys = [(resource, literal, name), (resource, literal, WILDCARD)]
        lengths = self._prefix_lengths.get(resource, ())
        keys += [(resource, prefixed, name[:size]) for size in lengths[: bisect_right(lengths, len(name))]]
        for key in dict.fromkeys(keys):
            rules = self._of_pattern.get(key)
            if rules is not None:
                yield rules

    @cached_property
    def _allowing(self) -> dict[tuple[int, str], list[Acl]]:
        """The rules that allow something, by (resource type, principal)."""
        allowing: dict[tuple[int, str], list[Acl]] = {}
        for acl in self._rules:
            if acl.permission == Permission.ALLOW:
                allowing.setdefault((acl.resource, acl.principal), []).append(acl)
        return allowing

    def allowing(self, resource: int, principal: str) -> Sequence[Acl]:
        """Return the rules that allow a principal something with resources of a kind."""
        return self._allowing.get((resource, principal), ())
