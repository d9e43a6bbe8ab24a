"""Kafka's StandardAuthorizer: whether a client may do what it asks for.

Source: org.apache.kafka.metadata.authorizer.StandardAuthorizerData.
"""

from typing import Self

from kview.simulate.acls import EVERYBODY, IMPLYING, WILDCARD, Acl, AclOperation, Acls, Permission
from kview.simulate.settings import ALLOW_EVERYONE, AUTHORIZER, SUPER_USERS, Settings


class Authorizer:
    """Judges by access control lists. Super users may do everything.

    A resource that no rule is about is for super users only, or for everyone if `open_without_rules`.
    """

    def __init__(self, super_users: frozenset[str], open_without_rules: bool) -> None:
        self._super_users = super_users
        self._open = open_without_rules

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Return the authorizer that the brokers' settings ask for, or None."""
        if not settings.text(AUTHORIZER):
            return None
        users = frozenset(user.strip() for user in settings.text(SUPER_USERS).split(";") if user.strip())
        return cls(users, settings.flag(ALLOW_EVERYONE))

    def allows(
        self, acls: Acls, principal: str, host: str, operation: AclOperation, resource: int, name: str
    ) -> bool:
        """Return whether a principal at a host's IP address may do an operation. Denying rules win."""
        if principal in self._super_users:
            return True
        allowed = ruled = False
        for rules in acls.about(resource, name):
            ruled = True
            for acl in (*rules.get(principal, ()), *rules.get(EVERYBODY, ())):
                if acl.host in (WILDCARD, host) and applies(acl, operation):
                    if acl.permission == Permission.DENY:
                        return False
                    allowed = True
        return allowed or (not ruled and self._open)

    def allows_any(
        self, acls: Acls, principal: str, host: str, operation: AclOperation, resource: int
    ) -> bool:
        """Return whether a principal may do an operation with at least one resource of a kind."""
        if self.allows(acls, principal, host, operation, resource, "\0"):
            return True
        return any(
            self.allows(acls, principal, host, operation, resource, acl.name)
            for acl in (*acls.allowing(resource, principal), *acls.allowing(resource, EVERYBODY))
            if acl.name != WILDCARD and acl.host in (WILDCARD, host) and applies(acl, operation)
        )


def applies(acl: Acl, operation: AclOperation) -> bool:
    """Return whether a rule is about an operation, itself or by implication."""
    if acl.operation == AclOperation.ALL or acl.operation == operation:
        return True
    return acl.permission == Permission.ALLOW and acl.operation in IMPLYING.get(operation, ())
