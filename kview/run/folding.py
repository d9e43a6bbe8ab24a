"""The fold together with its state. It takes snapshots and returns views."""

from kview.derive.view import View
from kview.model.snapshot import Snapshot
from kview.run.observing import Fold


def new_fold() -> Fold[View]:
    """Return a fold that has not seen a snapshot yet.

    The fold imports the calculations when it is created, so that this happens on the observer's thread.
    """
    from kview.derive.fold import State, step

    state = State()

    def fold(snapshot: Snapshot) -> View:
        nonlocal state
        state, view = step(state, snapshot)
        return view

    return fold
