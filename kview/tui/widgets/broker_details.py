"""The lines of what a broker says of itself, which are read when they come into sight and every 30 s."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from kview.derive.brokers.log_dirs import full_by_path
from kview.derive.brokers.replicas import broker_row
from kview.derive.view import View
from kview.language import directories as said
from kview.model.inspection import DirectoriesRequest, SettingsRequest
from kview.model.ports import Inspector
from kview.model.states import BrokerState
from kview.tui.app_of import app_of
from kview.tui.rows.broker_details import BrokerDetails, detail_lines
from kview.tui.text import Line
from kview.tui.widgets.drawn import Lines

_log = logging.getLogger(__name__)

AGAIN_MS = 30_000
"""How often a broker is asked while its screen is open. To answer, it walks through all its logs."""
RETRY_MS = 5_000
"""How soon it is asked again if it did not answer."""
LOW, HIGH = 30, 36
"""Below the first height there is one line, from the second one on several directories have lines."""


class BrokerDetailsPanel(Lines):
    """A broker's listeners and log directories. `on_read` is called after every answer.

    Only a broker that answers the observations is asked, and only while the live moment is shown.
    """

    def __init__(self, broker: int, on_read: Callable[[], None]) -> None:
        super().__init__(id="details")
        self._broker = broker
        self._on_read = on_read
        self._answers = BrokerDetails()
        self._next_ms: int | None = None
        self._asking = False
        self._count_set = False
        self._full_ms: Mapping[str, int] = {}

    @property
    def details(self) -> BrokerDetails:
        """What has been answered."""
        return self._answers

    def show(self, view: View, count_set: bool, inner_width: int) -> None:
        """Ask the broker if it is time to. With `count_set`, the panel also counts settings.
        It is `inner_width` cells wide."""

        def take() -> None:
            self._count_set = count_set
            self._full_ms = full_by_path(view, self._broker)
            self._ask_if_due(view)
            self.styles.height = len(self._lines_for(inner_width))

        self.attempt(take)

    def lines(self, width: int, height: int) -> list[Line]:
        return self._lines_for(width)

    def _lines_for(self, width: int) -> list[Line]:
        high = self.app.size.height
        most = 0 if high < LOW else 1 if high < HIGH else 4
        known = replace(self._answers, full_ms=self._full_ms)
        return detail_lines(known, width, most, self._count_set, app_of(self).wall_ms())

    def _ask_if_due(self, view: View) -> None:
        host = app_of(self)
        inspector, now_ms = host.inspector, host.wall_ms()
        if inspector is None or not view.moment.live:
            self._answers = BrokerDetails(note=said.NOT_OF_NOW)
            self._next_ms = None
            return
        if self._answers.note == said.NOT_OF_NOW:
            self._answers = BrokerDetails()
        if not _answers(view, self._broker):
            if self._answers == BrokerDetails():
                self._answers = BrokerDetails(note=said.not_asked(self._broker))
            return
        if self._asking or (self._next_ms is not None and now_ms < self._next_ms):
            return
        self._asking = True
        self.run_worker(self._ask(inspector), exclusive=True, group="details")

    async def _ask(self, inspector: Inspector) -> None:
        try:
            settings = await inspector.ask(SettingsRequest(broker=self._broker))
            directories = await inspector.ask(DirectoriesRequest(self._broker))
            before = self._answers
            if settings.failure and before.settings is not None:
                settings = before.settings
            if directories.failure and before.directories is not None:
                directories = before.directories
            self._answers = BrokerDetails(directories, settings)
            failed = bool(settings.failure or directories.failure)
            self._next_ms = app_of(self).wall_ms() + (RETRY_MS if failed else AGAIN_MS)
        except Exception:
            _log.exception("a broker's answer could not be shown")
            self._next_ms = app_of(self).wall_ms() + AGAIN_MS
        finally:
            self._asking = False
        if self.is_attached:
            self._on_read()

    def on_unmount(self) -> None:
        """Stop waiting, so that the observer stops asking."""
        self.workers.cancel_node(self)


def _answers(view: View, broker: int) -> bool:
    """Return whether a broker answers the observations, which a fenced one may do too."""
    at, brokers = broker_row(view, broker), view.snapshot.brokers
    return at is not None and (brokers.state[at] == BrokerState.UP or _is_fenced_only(view, at))


def _is_fenced_only(view: View, at: int) -> bool:
    brokers = view.snapshot.brokers
    return bool(brokers.state[at] == BrokerState.FENCED and not brokers.error[at])
