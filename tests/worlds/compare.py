"""Compares two values made of dataclasses, arrays and tuples, and finds where they differ."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.derive.events import EVENTS_BACK_MS
from kview.derive.view import GroupFigures, OffsetFigures, View
from kview.model.incidents import Incident
from kview.model.snapshot import OldestUnread, empty
from kview.model.units import UNKNOWN

Figures = TypeVar("Figures", GroupFigures, OffsetFigures)


def unlike(a: Any, b: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which `a` and `b` differ. NaN equals NaN."""
    if type(a) is type(b) and names(a):
        for name in names(a):
            yield from unlike(getattr(a, name), getattr(b, name), f"{path}.{name}")
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        if not same:
            yield f"{path}: {a!r} is not {b!r}"
    elif isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        for at, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from unlike(left, right, f"{path}[{at}]")
    elif a is not b and a != b and not (a != a and b != b):
        yield f"{path}: {a!r} is not {b!r}"


def names(value: Any) -> tuple[str, ...]:
    """The names of the fields of a struct or a dataclass, () for other values."""
    if isinstance(value, Struct):
        return value.__struct_fields__
    return tuple(field.name for field in fields(value)) if is_dataclass(value) else ()


def frozen(value: Any) -> Any:
    """Make every array in the value read-only, so that any write to one fails, and return the value."""
    for name in names(value):
        frozen(getattr(value, name))
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    return value


WATCHED_MS = 450_000
"""A lag in time beyond this may be known better by those who watched for longer than the look-back."""


def forgetful(view: View) -> View:
    """Return the view without the lags in time and the incidents that may depend on more than the look-back,
    and without the order of the groups that are so far behind."""

    def without(figures: Figures) -> Figures:
        far = figures.behind_ms > WATCHED_MS
        return replace(
            figures,
            behind_ms=np.where(far, WATCHED_MS, figures.behind_ms),
            behind_is_bound=figures.behind_is_bound & ~far,
            behind_is_estimate=figures.behind_is_estimate & ~far,
        )

    groups, offsets = without(view.groups), without(view.offsets)
    far = groups.behind_ms == WATCHED_MS
    findings = tuple(
        replace(finding, group="", behind_ms=WATCHED_MS, behind_is_bound=False, behind_is_estimate=False)
        if finding.behind_ms > WATCHED_MS
        else finding
        for finding in view.headline.findings
    )
    return replace(
        view,
        oldest_unread=empty(OldestUnread),
        incidents=_recent(view),
        headline=replace(view.headline, findings=findings),
        groups=replace(
            groups,
            reason_ms=np.where(far, WATCHED_MS, groups.reason_ms),
            place=np.where(far, UNKNOWN, groups.place),
            behind_trend=np.where(far, 0, groups.behind_trend),
        ),
        offsets=offsets,
    )


def _recent(view: View) -> tuple[Incident, ...]:
    """Return the incidents of the look-back, none if an older one reaches into it."""
    since_ms = view.snapshot.observation.ended_ms - EVENTS_BACK_MS
    old = [one for one in view.incidents if one.began_ms < since_ms]
    if any(one.is_open or one.ended_ms > since_ms for one in old):
        return ()
    return tuple(one for one in view.incidents if one.began_ms >= since_ms)
