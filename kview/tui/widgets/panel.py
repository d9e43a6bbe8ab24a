"""A panel with its title: in a frame, or below a line with its title where lines are scarce."""

from collections.abc import Callable

from textual.containers import Vertical
from textual.geometry import Region
from textual.strip import Strip

from kview.language import glyphs, panels
from kview.tui import edges
from kview.tui.app_of import app_of
from kview.tui.looks import Spot, marked
from kview.tui.text import EMPTY, Line, Role, Span, Title, cut, line, line_width, strip
from kview.tui.widgets.failing import FailureLog


class Panel(Vertical):
    """The edges around what a panel shows. The panel inside says its title, unless `entitle` has said one."""

    DEFAULT_CSS = """
    Panel { height: 1fr; padding: 1; }
    Panel.-unframed { padding: 1 0 0 0; }
    Panel.-bare { padding: 0; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = Title()
        self._own: Line | None = None
        self._is_marked = False
        self.is_entitled = True
        """Whether its own title could be made."""
        self._edges: list[Strip] = []
        self._drawn_for: object = None
        self._failures = FailureLog(f"the title of {id or 'a panel'}")

    @property
    def is_framed(self) -> bool:
        """Whether there is a frame, and not only a line above."""
        return not self.has_class("-unframed")

    def fit(self, framed: bool) -> None:
        """Have a frame, or only a line above."""
        self.set_class(not framed, "-unframed")

    def bare(self, is_bare: bool) -> None:
        """Have no edges, because what it shows has its own."""
        self.set_class(is_bare, "-bare")

    @property
    def title_cells(self) -> int:
        """The cells that a title has at most."""
        return edges.title_cells(self.outer_size.width, self.is_framed)

    def entitle(self, make: Callable[[], Line]) -> None:
        """Have the title that `make` returns. If `make` raises an exception, the title says so."""
        try:
            self._own, self.is_entitled = make(), True
            self._failures.drawn()
        except Exception as error:
            self.is_entitled = False
            self._failures.failed(error)
            self._own = line(Span(panels.not_drawn(app_of(self).log_file), Role.WARN))
        self.redraw()

    def show(self, title: Title) -> None:
        """Have the title of the panel inside."""
        if title != self._title:
            self._title = title
            self.redraw()

    def mark(self, is_marked: bool) -> None:
        """Have a demo point at the title."""
        if is_marked != self._is_marked:
            self._is_marked = is_marked
            self.redraw()

    def redraw(self) -> None:
        """Send the upper edge to the terminal if it has changed."""
        if not self._edges or self._drawn_for != self._look:
            self._drawn_for = None  # all of it is about to be drawn, also if it soon looks as before
            return
        upper = self._upper()
        if upper != self._edges[0]:
            self._edges[0] = upper
            self.refresh(Region(-self.gutter.left, -self.gutter.top, self.outer_size.width, 1))

    def on_descendant_focus(self) -> None:
        """Show that the panel has the focus."""
        self.refresh()

    def on_descendant_blur(self) -> None:
        """Show that the panel does not have the focus any more."""
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the edges. The panel inside covers the rest."""
        # For each change of anything in the panel, all its lines are asked for.
        if self._drawn_for != self._look:
            self._drawn_for = self._look
            self._edges = self._all_edges()
        lines = self._edges[crop.y : crop.bottom]
        is_whole = crop.x == 0 and crop.width == self.outer_size.width
        return lines if is_whole else [line.crop(crop.x, crop.right) for line in lines]

    @property
    def _look(self) -> object:
        """What determines how the edges look, apart from the title."""
        return self.outer_size, self.is_framed, self.has_focus_within, app_of(self).palette

    def _all_edges(self) -> list[Strip]:
        height = self.outer_size.height
        if not self.is_framed:
            return [self._upper(), *[self._strip(EMPTY)] * (height - 1)][:height]
        return [self._upper(), *[self._side()] * (height - 2), self._lower()][:height]

    @property
    def _role(self) -> Role:
        return Role.KEY if self.has_focus_within else Role.RULE

    def _upper(self) -> Strip:
        cells, title = self.outer_size.width, self._title
        text = title.text if self._own is None else self._own
        room = self.title_cells - (line_width(title.scope) + 2 if title.scope else 0)
        if title.has_note and len(text) > 1 and line_width(text) > room and self._own is None:
            text = text[:-1]
        text = cut(text, room)
        drawn = self._strip(edges.upper(text, title.scope, cells, self._role, self.is_framed))
        if title.is_marked or self._is_marked:
            at = app_of(self)
            begin = len(edges.FRAMED if self.is_framed else edges.UNFRAMED) + 1
            spot = Spot(0, begin, begin + line_width(text), begin - 1)
            (drawn,) = marked([drawn], [spot], at.palette, at.ascii_only)
        return drawn

    def _lower(self) -> Strip:
        return self._strip(edges.lower(self.outer_size.width, self._role))

    def _side(self) -> Strip:
        side, inside = Span(glyphs.BAR, self._role), Span(" " * (self.outer_size.width - 2))
        return self._strip((side, inside, side))

    def _strip(self, spans: Line) -> Strip:
        at = app_of(self)
        return strip(spans, self.outer_size.width, at.palette, at.ascii_only)
