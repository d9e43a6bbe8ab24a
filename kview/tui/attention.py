"""Tells the observer which partitions are in sight, and which broker to forget."""

from typing import TYPE_CHECKING

from kview.language import panels
from kview.model.states import BrokerState
from kview.tui.widgets.bottom import StatusMessage

if TYPE_CHECKING:
    from kview.tui.app import KviewApp


class AttentionKeys:
    """Carries out the key that removes a broker, and reports to the observer what is in sight."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._attention = app.session.attention
        self._reported: frozenset[tuple[str, int]] = frozenset()
        self._sequence: int | None = None

    @property
    def allows_delete(self) -> bool:
        """Whether that key works here. In a replay it also works, and says why it does nothing."""
        screen = self._app.shown()
        if screen is None or not screen.has_targets:
            return False
        return self._attention is not None or self._is_replay

    @property
    def _is_replay(self) -> bool:
        return self._app.timeline is not None and self._app.timeline.replay

    def delete(self) -> None:
        """Forget the selected broker if the cluster no longer lists it; otherwise say why not."""
        self._app.say(self._delete())

    def _delete(self) -> StatusMessage:
        view, screen, keys = self._app.view, self._app.shown(), self._app.keys
        broker = screen.selected_broker() if screen is not None else None
        if self._attention is None:
            return StatusMessage(keys.said(panels.DELETE_IN_REPLAY))
        if not self._app.live:
            return StatusMessage(keys.said(panels.DELETE_IS_LIVE), keys.said("press {pause} to return to it"))
        if view is None or broker is None:
            return StatusMessage(keys.said(panels.DELETE_NEEDS_BROKER))
        table = view.snapshot.brokers
        states = [str(state) for id, state in zip(table.id, table.state, strict=True) if id == broker]
        if states and states[0] != BrokerState.GONE:
            key = keys.name("remove-broker")
            return StatusMessage(panels.not_dismissed(broker, BrokerState(states[0]), key))
        self._attention.dismiss(broker)
        return StatusMessage(panels.dismissed(broker))

    def report_in_sight(self, partitions: frozenset[tuple[str, int]]) -> None:
        """Tell the observer which partitions are in sight, if they changed, at most once per observation."""
        view = self._app.view
        if self._attention is None or view is None or not view.moment.live:
            return
        sequence = view.snapshot.observation.sequence
        if sequence == self._sequence:
            return
        self._sequence = sequence
        if partitions != self._reported:
            self._reported = partitions
            self._attention.prefer(partitions)

    def report_none(self) -> None:
        """Tell the observer that no partition is in sight any more."""
        if self._attention is not None and self._reported:
            self._reported = frozenset()
            self._attention.prefer(self._reported)
