"""A table whose rows are drawn as boxes as long as every one has room for one: tiles, or frames."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from kview.tui.actions import Where, bindings
from kview.tui.keys import ACTIONS
from kview.tui.rows.tiles import Box, nearest
from kview.tui.widgets.table import Table


class Tiled(Table):
    """Boxes, one selected, among which the arrows go in all four directions; else rows."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.RACKS)]

    @property
    def boxes(self) -> Sequence[Box] | None:
        """Where the boxes lie, in the order of the rows. None if the rows are a table."""
        raise NotImplementedError

    def action_move(self, by: int) -> None:
        """Select the box below (negative: above)."""
        self._step(0, by)

    def action_aside(self, by: int) -> None:
        """Select the box to the right (negative: left)."""
        self._step(by, 0)

    def _step(self, across: int, down: int) -> None:
        boxes = self.boxes
        if boxes is None:
            super().action_move(down)
        elif self.index < len(boxes):
            self.choose(nearest(boxes, self.index, across, down))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action works: boxes have sides, rows have none."""
        if action == "aside":
            return self.boxes is not None
        return super().check_action(action, parameters)

    def scroll_rows(self, by: int) -> None:
        """Scroll a table. Boxes are all in sight."""
        if self.boxes is None:
            super().scroll_rows(by)

    def _extent(self) -> int:
        return super()._extent() if self.boxes is None else self.size.height

    def _show_selected(self) -> None:
        if self.boxes is None:
            super()._show_selected()
        elif self.scroll_offset.y:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
