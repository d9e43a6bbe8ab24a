"""A fold that contains its state. It takes snapshots and returns views."""

from collections.abc import Callable, Sequence

from kview.derive.view import View
from kview.model.snapshot import Snapshot
from kview.run.observing import Fold

Taker = Callable[[Snapshot, View | None], None]
"""Takes each snapshot and its view, on the thread that folds. One that could not be folded has no view: it
shows the bug."""


def new_fold(ignore: tuple[str, ...] = (), takers: Sequence[Taker] = ()) -> Fold[View]:
    """Return a fold that has not seen a snapshot yet. `ignore` has patterns of groups that count nowhere.

    The calculations are imported only here, so that this happens on the observer's thread.
    """
    from kview.derive.fold import State, step

    state = State(ignore)

    def fold(snapshot: Snapshot) -> View:
        nonlocal state
        view = None
        try:
            state, view = step(state, snapshot)
            return view
        finally:
            for take in takers:
                take(snapshot, view)

    return fold
