"""The controller's side of quotas. Source: org.apache.kafka.controller.ClientQuotaControlManager."""

import ipaddress
from collections.abc import Mapping, Sequence
from math import isnan
from typing import NamedTuple

from kview.simulate.client_quotas import (
    CLIENT_ID,
    IP,
    NOTHING,
    OF_ADDRESSES,
    OF_CLIENTS,
    USER,
    WHOLE,
    Entity,
)
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.results import AdminResult
from kview.simulate.setting import INT_MAX

OK = AdminResult(ErrorCode.NONE)
QUOTAS_MAX = 10_000
NAME_MAX = 1_000
"""Limits of the quotas, and of the characters of a name in one. Kafka has none."""


class QuotaChange(NamedTuple):
    """Quotas of an entity to set, or to remove where the value is None, in the request's order."""

    entity: Entity
    values: Sequence[tuple[str, float | None]]


class QuotaChanges:
    """Changes the quotas, which are part of the metadata."""

    def __init__(self, metadata: MetadataLog) -> None:
        self._metadata = metadata

    def alter(self, changes: Sequence[QuotaChange], validate_only: bool) -> list[tuple[Entity, AdminResult]]:
        """Change quotas in one step. What is wrong for one entity leaves the others alone."""
        known = self._metadata.image.client_quotas
        after: dict[Entity, Mapping[str, float]] = dict(known)
        results: dict[Entity, AdminResult] = {}
        for change in changes:
            entity = change.entity
            if entity in results or _names_a_key_twice(change.values):
                names = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
                wrong: str | None = f"Ignoring duplicate entity ClientQuotaEntity(entries={{{names}}})"
            else:
                wrong = _wrong_entity(entity) or _wrong_values(entity, change.values)
            if wrong is None and len(after) >= QUOTAS_MAX and entity not in after:
                wrong = "There are too many quotas."
            results[entity] = OK if wrong is None else AdminResult(ErrorCode.INVALID_REQUEST, wrong)
            if wrong is None:
                values = dict(after.pop(entity, NOTHING))
                for key, value in change.values:
                    if value is None:
                        values.pop(key, None)
                    else:
                        values[key] = value
                if values:
                    after[entity] = values
        if after != known and not validate_only:
            self._metadata.commit({}, client_quotas=after)
        return list(results.items())


def _wrong_entity(entity: Entity) -> str | None:
    kinds = {kind for kind, _ in entity}
    if not kinds:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {kind}"
        if name is not None and not name:
            return f"Empty {kind} not supported"
        if name is not None and len(name) > NAME_MAX:
            return f"A name may have at most {NAME_MAX} characters."
    if IP in kinds and len(kinds) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    for kind, name in entity:
        if kind == IP and name is not None and not _is_address(name):
            return f"{name} is not a valid IP or resolvable host."
    return None


def _is_address(text: str) -> bool:
    """Return whether a text is an IP address, or this machine's name. Other hosts are not looked up."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def _names_a_key_twice(values: Sequence[tuple[str, float | None]]) -> bool:
    return len({key for key, _ in values}) < len(values)


def _wrong_values(entity: Entity, values: Sequence[tuple[str, float | None]]) -> str | None:
    known = OF_ADDRESSES if entity[0][0] == IP else OF_CLIENTS
    for key, value in values:
        if value is None:
            continue
        if key not in known:
            return f"Invalid configuration key {key}"
        if not value > 0 and not isnan(value):
            return f"Quota {key} must be greater than 0"
        if key in WHOLE:
            if value > WHOLE[key]:
                kind = "an INT" if WHOLE[key] == INT_MAX else "a LONG"
                return f"Proposed value for {key} is too large for {kind}."
            if value % 1.0 > 1e-6:
                return f"{key} cannot be a fractional value."
    return None
