"""Lines of text: names are cut in the middle, and everything fits, whatever names a cluster has."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kview.tui.palette import PLAIN
from kview.tui.text import Role, Span, content, cut, joined, justified, line, line_width, middle, pad, strip
from kview.tui.widgets.prompt import fitting

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
LINES = st.lists(NAMES.filter(str.isprintable).map(Span), max_size=5).map(tuple)


def test_names_are_cut_in_the_middle() -> None:
    assert middle("my-very-long-topic-name", 19) == "my-very-l…opic-name"
    assert middle("invoice", 7) == "invoice"
    assert middle("invoice", 6) == "inv…ce"
    assert [middle("invoice", cells) for cells in (2, 1, 0)] == ["i…", "…", ""]


def test_a_name_cannot_move_the_cursor() -> None:
    assert content(line("evil\x1b[2J\nname")) == "evil?[2J?name"
    assert content(line(Span("\u202eevil\x9b2J", Role.DIM))) == "?evil?2J"


@given(NAMES, st.integers(0, 50))
def test_a_name_fits(name: str, cells: int) -> None:
    assert cell_len(middle(name, cells)) <= cells


@given(LINES, st.integers(1, 80), st.booleans())
def test_lines_fit_exactly(spans: tuple[Span, ...], cells: int, right: bool) -> None:
    assert line_width(cut(spans, cells)) <= cells
    assert line_width(pad(spans, cells, right)) in (
        cells,
        cells - 1,
    )  # a wide character cut in half leaves one


def test_cut_lines_say_so() -> None:
    assert content(cut(line("one ", Span("two", Role.DIM)), 6)) == "one t…"
    assert content(cut(line("one"), 3)) == "one"


def test_figures_are_aligned_right() -> None:
    assert content(pad(line("41"), 5, right=True)) == "   41"
    assert content(pad(line("41"), 5)) == "41   "


def test_parts_are_whole_or_not_there() -> None:
    parts = [line("kview"), line("6 brokers"), line("2 racks")]
    assert content(joined(parts, Span("  "), 25)) == "kview  6 brokers  2 racks"
    assert content(joined(parts, Span("  "), 24)) == "kview  6 brokers"
    assert content(joined(parts, Span("  "), 4)) == "kvi…"


def test_two_ends_of_a_line() -> None:
    assert content(justified(line("left"), line("right"), 12)) == "left   right"
    assert content(justified(line("a long left"), line("right"), 10)) == "a lo…right"


def test_a_line_that_is_drawn_too_long_ends_in_an_ellipsis() -> None:
    drawn = strip(line("one ", Span("two three", Role.DIM)), 8, PLAIN, ascii_only=False)
    assert drawn.text == "one two…"


def test_a_hint_fits_its_input() -> None:
    assert fitting("a hint of twenty-one.", 23) == "a hint of twenty-one."
    assert fitting("a hint of twenty-one.", 22) == "a hint of twenty-on…"
