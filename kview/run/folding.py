"""The fold with its state kept: snapshots in, views out."""

from kview.derive.view import View
from kview.model.snapshot import Snapshot
from kview.run.observing import Fold


def new_fold() -> Fold[View]:
    """A fold that has seen nothing yet. Imports the calculations when it is made, on the observer's
    thread."""
    from kview.derive.fold import State, step

    state = State()

    def fold(snapshot: Snapshot) -> View:
        nonlocal state
        state, view = step(state, snapshot)
        return view

    return fold
