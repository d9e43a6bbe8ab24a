"""A fold that contains its state. It takes snapshots and returns views."""

from collections.abc import Callable

from kview.derive.view import View
from kview.model.snapshot import Snapshot
from kview.run.observing import Fold

Taker = Callable[[View], None]
"""Is called with each live view, on the thread that folds."""


def new_fold(ignore: tuple[str, ...] = (), take: Taker | None = None) -> Fold[View]:
    """Return a fold that has not seen a snapshot yet.

    `ignore` has patterns of groups that count nowhere. `take` gets every view, too.

    The calculations are imported only here, so that this happens on the observer's thread.
    """
    from kview.derive.fold import State, step

    state = State(ignore)

    def fold(snapshot: Snapshot) -> View:
        nonlocal state
        state, view = step(state, snapshot)
        if take is not None:
            take(view)
        return view

    return fold
