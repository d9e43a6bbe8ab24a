"""Keeps the filter, the orders and the screen shown last for each cluster, and restores them once."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kview.errors import KviewError
from kview.language.errors import message, remedy
from kview.model.choices import KeptChoices, KeptSort
from kview.model.events import Severity
from kview.tui.options import Options, Sort
from kview.tui.widgets.bottom import StatusMessage

if TYPE_CHECKING:
    from kview.tui.app import KviewApp


class Remembering:
    """Restores choices at the first view of a cluster, and keeps them when they change."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._memory = app.session.memory
        self._cluster_id = ""
        self._kept = KeptChoices()
        self._has_failed = False

    def restored(self, options: Options, cluster_id: str) -> Options:
        """Return the options with what was kept for a cluster, at its first view."""
        if self._memory is None or not cluster_id or cluster_id == self._cluster_id:
            return options
        is_first, self._cluster_id = not self._cluster_id, cluster_id
        if not is_first:
            return options
        try:
            kept = self._memory.recall(cluster_id)
        except KviewError as error:
            self._fail(error)
            return options
        if kept is None:
            return options
        self._kept = kept
        if kept.screen:
            self._app.go_soon(kept.screen)
        sorts = {panel: Sort(sort.column, sort.descending) for panel, sort in kept.sorts.items()}
        return replace(options, filter=kept.filter, sorts=sorts)

    def keep(self, options: Options, screen: str) -> None:
        """Keep the choices if they have changed. A failure is said once."""
        if self._memory is None or not self._cluster_id or self._has_failed:
            return
        sorts = {panel: KeptSort(sort.column, sort.descending) for panel, sort in options.sorts.items()}
        choices = KeptChoices(options.filter, sorts, screen)
        if choices == self._kept or (not options.wanted and options.filter):
            return
        self._kept = choices
        try:
            self._memory.keep(self._cluster_id, choices)
        except KviewError as error:
            self._has_failed = True
            self._fail(error)

    def _fail(self, error: KviewError) -> None:
        self._app.say(StatusMessage(message(error), remedy(error), Severity.WARN))
