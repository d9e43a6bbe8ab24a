"""Quotas as words: whom they name, what they limit, and which of them holds for a client."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

from kview.language import glyphs, words
from kview.language.inspection import failure
from kview.model.inspection import Entity, InspectionFailureKind, Quota, QuotaKey, QuotasAnswer

DEFAULT = "<default>"
"""What a quota names if it holds for all names without a quota of their own, as Kafka writes it."""

NOT_SET = "not set"
OF_ITS_USER = "its user's, if any"
"""Which quota holds, if it depends on the member's user: no answer says who that is."""


def named(quota: Quota) -> str:
    """Return whom a quota names: `user alice, client id <default>`."""
    parts = sorted(quota.entity, reverse=True)  # users first, as Kafka's own tools have it
    return ", ".join(f"{kind.replace('-', ' ')} {DEFAULT if name is None else name}" for kind, name in parts)


def limit(key: str, value: float) -> str:
    """Return a limit with its unit: `1.0 MB/s`, `50 %`, `10/s`."""
    match key:
        case QuotaKey.PRODUCER | QuotaKey.CONSUMER:
            return f"{words.size(round(value))}/s" if math.isfinite(value) else words.NONE
        case QuotaKey.REQUEST:
            return f"{words.rate(value)} %"
        case _:
            return f"{words.rate(value)}/s"


def of_member(quotas: Sequence[Quota], client_id: str) -> str:
    """Return the quotas that hold for a consumer with this client id: `1.0 MB/s (default), requests 50 %`.

    The member's user is not known. One that any user has is a default user's. If some users have quotas of
    their own that could come before, that is said.
    """
    parts = []
    for key, what in _OF_CONSUMERS.items():
        mine = {quota.entity: dict(quota.limits)[key] for quota in quotas if key in dict(quota.limits)}
        ranked = list(_candidates(client_id))
        in_force = next((entity for entity in ranked if entity in mine), None)
        of_users = any(_may_hold(entity, client_id) for entity in mine)
        if in_force is not None:
            default = " (default)" if all(name is None for _, name in in_force) else ""
            unless = f", or {OF_ITS_USER}" if of_users else ""
            parts.append(f"{what}{limit(key, mine[in_force])}{default}{unless}")
        elif of_users:
            parts.append(f"{what}{OF_ITS_USER}")
    return ", ".join(parts) or "none"


def of_members(answer: QuotasAnswer, zone: tzinfo | None) -> str:
    """Return when the quotas of members were read, or why they are not known, for a title."""
    if answer.failure.kind is InspectionFailureKind.NOT_AUTHORIZED:
        return f"{glyphs.DOT} quotas: not authorized"
    if answer.failure:
        return f"{glyphs.DOT} quotas: {failure(answer.failure, answer)}"
    if not answer.quotas:
        return f"{glyphs.DOT} no quotas"
    return f"{glyphs.DOT} quotas of {words.clock(answer.asked_ms, zone, tenths=False)}"


_OF_CONSUMERS: Mapping[QuotaKey, str] = {QuotaKey.CONSUMER: "", QuotaKey.REQUEST: "requests "}
"""What limits consumers, and what stands before the limit."""

_USER, _CLIENT = str(Entity.USER), str(Entity.CLIENT_ID)


def _candidates(client_id: str) -> Iterator[tuple[tuple[str, str | None], ...]]:
    """Yield the entities whose quotas hold for a client id of any user, the first ones first."""
    for user in (((_USER, None),), ()):
        for client in (((_CLIENT, client_id),), ((_CLIENT, None),), ()):
            if entity := (*client, *user):
                yield entity


def _may_hold(entity: tuple[tuple[str, str | None], ...], client_id: str) -> bool:
    """Return whether a quota names a user, and would hold for this client id if that were its user."""
    names = dict(entity)
    return names.get(_USER) is not None and names.get(_CLIENT) in (None, client_id)
