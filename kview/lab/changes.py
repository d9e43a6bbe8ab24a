"""Which adjustments of a simulated cluster are in force, as the adjustments that undo them."""

from kview.model.adjustments import Adjustment, AdjustmentKind

_MEMBERS = {AdjustmentKind.ADD_MEMBER: 1, AdjustmentKind.REMOVE_MEMBER: -1}
_TRAFFIC = {
    AdjustmentKind.PAUSE: AdjustmentKind.PAUSE,
    AdjustmentKind.RESUME: AdjustmentKind.PAUSE,
    AdjustmentKind.PAUSE_PRODUCER: AdjustmentKind.PAUSE_PRODUCER,
    AdjustmentKind.RESUME_PRODUCER: AdjustmentKind.PAUSE_PRODUCER,
    AdjustmentKind.UNSET: AdjustmentKind.SET,
}
"""Kinds that are about the same thing, and the one that stands for them."""

_Thing = tuple[AdjustmentKind, str, int, str]


class Changes:
    """For each thing that was adjusted, what brings it back to how it was before the first adjustment."""

    def __init__(self) -> None:
        self._back: dict[_Thing, Adjustment] = {}
        self._members: dict[str, int] = {}
        """How many members each group lacks."""

    def note(self, back: Adjustment) -> None:
        """Remember what undoes an adjustment that was just made."""
        if back.kind in _MEMBERS:
            self._members[back.name] = self._members.get(back.name, 0) + _MEMBERS[back.kind]
            return
        kind = _TRAFFIC.get(back.kind, back.kind)
        self._back.setdefault((kind, back.name, back.broker, back.key), back)

    def taken(self) -> list[Adjustment]:
        """Return what undoes all adjustments, and forget them."""
        members = [
            Adjustment(AdjustmentKind.ADD_MEMBER if lacks > 0 else AdjustmentKind.REMOVE_MEMBER, name)
            for name, lacks in self._members.items()
            for _ in range(abs(lacks))
        ]
        found = [*self._back.values(), *members]
        self._back, self._members = {}, {}
        return found
