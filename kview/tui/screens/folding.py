"""What the two screens with a list of all groups share: rows that open and close, and the selected group."""

from collections.abc import Hashable

from kview.derive.groups.alike import Alike
from kview.tui.rows.groups import GroupRows, Unfolding
from kview.tui.rows.row import Rows
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.table import Table


class FoldingScreen(KviewScreen):
    """A screen with a list of groups, `#groups`, in which groups that do the same share a row."""

    _opened: frozenset[Hashable] = frozenset()
    """The keys of rows that stand for many, whose single rows are shown, too."""

    def unfold(self, key: Hashable) -> None:
        """Show the groups that share this row, or fold them again."""
        self._opened ^= {key}
        self.update()

    def fold_all(self) -> bool:
        """Fold all rows. Returns False if none in the lists shown was unfolded."""
        shown = any(key in self._opened for table in self.query(Table) for key in _folds(table))
        self._opened = frozenset()
        if shown:
            self.update()
        return shown

    def unfolding(self, room: int, chosen: Hashable) -> Unfolding:
        """Return how a list is folded that has so much room, in which the user has chosen a row."""
        return Unfolding(room, self._opened, chosen if isinstance(chosen, str) else "")

    def focused_rows(self) -> tuple[str, Rows] | None:
        """Return the focused table and its rows with nothing folded, or None if no table is focused."""
        focused = super().focused_rows()
        if focused is not None and isinstance(focused[1], GroupRows):
            return focused[0], focused[1].whole()
        return focused

    def selected_group(self) -> str:
        """Return the selected group of the list of groups, or the one that stands for those that share
        the row; '' if there is none."""
        listed = self.query_one("#groups", Table)
        rows, key = listed.rows, listed.selected
        return rows.example(key) if isinstance(rows, GroupRows) and key is not None else ""


def _folds(table: Table) -> list[Alike]:
    """Return the keys of the rows in a table that are shared."""
    keys = table.rows.keys if table.is_shown and isinstance(table.rows, GroupRows) else ()
    return [key for key in keys if isinstance(key, Alike)]
