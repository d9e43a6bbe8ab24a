"""The controller's side of SCRAM users. Source: org.apache.kafka.controller.ScramControlManager."""

from collections.abc import Sequence
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.results import AdminResult
from kview.simulate.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramMechanism,
    ScramUser,
    credential,
)

OK = AdminResult(ErrorCode.NONE)
TWICE = AdminResult(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
NO_NAME = AdminResult(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
NO_MECHANISM = AdminResult(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
NOT_THERE = AdminResult(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
TOO_FEW = AdminResult(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
TOO_MANY = AdminResult(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")

CREDENTIALS_MAX = 10_000
NAME_MAX, SALT_MAX = 1_000, 1_000
"""Limits of the users' credentials, and of the characters and bytes in each. Kafka has none."""
TOO_LARGE = AdminResult(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many credentials, or one that is too long.")


class Deletion(NamedTuple):
    """A credential to delete. `mechanism` is any number that a client sent."""

    name: str
    mechanism: int


class Upsertion(NamedTuple):
    """A credential to add, or to replace."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class ScramUsers:
    """Changes the credentials of users, which are part of the metadata."""

    def __init__(self, metadata: MetadataLog) -> None:
        self._metadata = metadata

    def alter(self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> dict[str, AdminResult]:
        """Change credentials in one step. Each user whose entries are wrong is left out, and told why."""
        results: dict[str, AdminResult] = {}
        changes: dict[str, Deletion | Upsertion] = {}
        asked: list[Deletion | Upsertion] = [*deletions, *upsertions]
        for change in asked:
            known = results.get(change.name)
            if known is not None and known is not OK:
                continue
            results[change.name] = TWICE if known is OK else self._checked(change)
            changes[change.name] = change
        image = self._metadata.image.scram
        after = dict(image)
        for name, change in changes.items():
            if results[name] is not OK:
                continue
            user: ScramUser = name, ScramMechanism(change.mechanism)
            if isinstance(change, Deletion):
                del after[user]
            elif len(after) >= CREDENTIALS_MAX and user not in after:
                results[name] = TOO_LARGE
            else:
                after[user] = credential(user[1], change.salted_password, change.salt, change.iterations)
        if after != image:
            self._metadata.commit({}, scram=after)
        return results

    def _checked(self, change: Deletion | Upsertion) -> AdminResult:
        if not change.name:
            return NO_NAME
        if change.mechanism not in ScramMechanism.__members__.values():
            return NO_MECHANISM
        if isinstance(change, Deletion):
            user = change.name, ScramMechanism(change.mechanism)
            return OK if user in self._metadata.image.scram else NOT_THERE
        if change.iterations < ITERATIONS_MIN:
            return TOO_FEW
        if change.iterations > ITERATIONS_MAX:
            return TOO_MANY
        if len(change.name) > NAME_MAX or len(change.salt) > SALT_MAX:
            return TOO_LARGE
        return OK
