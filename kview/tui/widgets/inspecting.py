"""What the panels of records and settings have in common: they ask when told to, and say what went wrong."""

import logging
from collections.abc import Callable, Coroutine
from textwrap import wrap
from typing import Any, Protocol

from textual.geometry import Size
from textual.strip import Strip

from kview.language import inspection as said
from kview.language.payloads import Form
from kview.model.inspection import A
from kview.model.inspection import Question as Asked
from kview.tui.app_of import app_of
from kview.tui.text import EMPTY, Line, Role, Span, cut, line, strip
from kview.tui.widgets.drawn import Drawn
from kview.tui.widgets.key_line import KeyLine
from kview.tui.widgets.table import GUTTER, Table

_log = logging.getLogger(__name__)


class Detail(Protocol):
    """Something to show in full on a screen of its own."""

    @property
    def forms(self) -> bool:
        """Whether it can be shown as text, JSON and hex."""
        ...

    def title(self) -> Line:
        """Return the line above."""
        ...

    def lines(self, form: Form, cells: int) -> list[Line]:
        """Return all lines, none wider than `cells`."""
        ...


class InspectingTable(Table):
    """A table that is filled on demand, with a message below its rows. Escape cancels a question."""

    def __init__(self, *, id: str, opens: bool = True) -> None:
        super().__init__(id=id, opens=opens)
        self._message: tuple[str, Role] = ("", Role.DIM)
        self._asking = False
        self._questions = 0

    @property
    def asking(self) -> bool:
        """Whether an answer is being waited for."""
        return self._asking

    def let_go(self) -> None:
        """Keep the rows: they are of what was read, and not of a view."""
        Drawn.let_go(self)

    def refill(self) -> None:
        """Make the rows again from what was answered last."""
        raise NotImplementedError

    def ask(self, question: Asked[A], what: str, take: Callable[[A], None]) -> None:
        """Ask the cluster, and pass the answer to `take`. A recording is not asked."""
        inspector = app_of(self).inspector
        if inspector is None:
            self.message(said.NOT_IN_A_RECORDING, Role.DIM)
            self.refill()
            return

        async def work() -> None:
            take(await inspector.ask(question))

        self.start(f"reading {what} … {app_of(self).keys.name('back')} cancels", work())
        self.refill()

    def start(self, waiting: str, work: Coroutine[Any, Any, None]) -> None:
        """Wait for an answer, which `work` takes, and say so meanwhile. Only the last question counts."""
        self._asking = True
        self._questions += 1
        self.message(waiting, Role.TEXT)
        self._keys()
        number = self._questions

        async def run() -> None:
            try:
                await work
            except Exception:
                _log.exception("an answer could not be shown")
                self.message("the answer could not be shown; see kview.log", Role.WARN)
            finally:
                if number == self._questions:
                    self._asking = False
                    self._keys()

        self.run_worker(run(), exclusive=True, group="inspect")

    def _keys(self) -> None:
        """Show that another key works now."""
        if self.is_attached:
            for keys in self.screen.query(KeyLine):
                keys.redraw()

    def cancel(self) -> bool:
        """Stop waiting for the answer, and return whether there was something to wait for."""
        if not self._asking:
            return False
        self.workers.cancel_node(self)
        self._asking = False
        self.message("cancelled", Role.DIM)
        return True

    def on_unmount(self) -> None:
        """Stop waiting, so that the observer stops asking."""
        self.workers.cancel_node(self)

    # -- the message below the rows

    def message(self, text: str, role: Role) -> None:
        """Show a message below the rows."""
        self._message = (text, role)
        self._settle()
        self.redraw()

    def _message_lines(self, cells: int) -> list[Line]:
        text, role = self._message
        if not text:
            return []
        room = max(10, cells - GUTTER)
        wrapped = [part for paragraph in text.split("\n") for part in (wrap(paragraph, room) or [""])]
        lines = [cut(line("  ", Span(part, role)), cells) for part in wrapped]
        return [EMPTY, *lines] if len(self.rows) else lines

    def _below(self) -> int:
        return len(self._message_lines(self.size.width))

    def painted(self, size: Size) -> list[Strip]:
        """Return the strips of the head, the visible rows and the message."""
        at = app_of(self)
        below = self._message_lines(size.width)
        strips = super().painted(Size(size.width, max(1, size.height - len(below))))
        strips += [strip(spans, size.width, at.palette, at.ascii_only) for spans in below]
        return strips[: size.height]
