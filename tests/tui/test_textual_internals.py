"""Canaries for what kview.tui.textual_internals relies on: they fail if Textual changes.

If one does: read its reach there, see what Textual has in its place, and pin that minor version.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.color import Color
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.filter import NoColor
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input, Static

import kview.tui
from kview.tui.app import KviewApp
from kview.tui.textual_internals import OwnApp, tell_escape_apart
from tests.tui.harness import (
    CRASH,
    HEALTHY,
    FakeLab,
    dashboard,
    own_themes,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.textual_internals import drawn_strips, has_mounted_ahead

ROOT = Path(kview.tui.__file__).parents[2]
INTERNALS = [ROOT / "kview/tui/textual_internals.py", ROOT / "tests/tui/textual_internals.py"]


class BugAtOnce(OwnApp):
    """An app with a bug that says whether it runs in a terminal."""

    def __init__(self, is_headless: bool) -> None:
        super().__init__(colourless=False)
        self._without_terminal = is_headless
        self.printed: list[Any] = []

    @property
    def is_headless(self) -> bool:
        return self._without_terminal

    def on_mount(self) -> None:
        raise ZeroDivisionError("a bug")

    def panic(self, *renderables: Any) -> None:
        self.printed += renderables


class Switching(OwnApp):
    """An app with two modes, in which the time for which frames are held back never ends."""

    MODES: ClassVar[dict[str, Any]] = {"one": Screen, "two": Screen}
    DEFAULT_MODE = "one"

    def __init__(self) -> None:
        super().__init__(colourless=False)
        self.delays = 0

    def delay_update(self, delay: float = 0.05) -> None:
        self.delays += 1
        super().delay_update(3600)


@running
async def test_a_screen_is_shown_as_soon_as_it_has_drawn_itself() -> None:
    app = Switching()
    async with app.run_test() as pilot:
        for number, mode in enumerate(("two", "one", "two"), start=app.delays + 1):
            await app.switch_mode(mode)
            assert app.delays == number, "Textual holds frames back when it switches modes"
            await until(pilot, lambda: not app._batch_count, "frames are painted again")


@running
async def test_a_bug_is_kept_and_textual_prints_nothing() -> None:
    app = BugAtOnce(is_headless=False)
    with pytest.raises(ZeroDivisionError):
        async with app.run_test():
            pass
    assert isinstance(app.bug, ZeroDivisionError)
    assert app._exit_renderables == []


def test_textual_would_print_what_it_keeps_under_that_name() -> None:
    source = inspect.getsource(App)
    assert "self._exit_renderables.extend(" in source
    assert "self.error_console.print(self._exit_renderables[0])" in source
    assert list(inspect.signature(App._handle_exception).parameters) == ["self", "error"]


def test_a_key_that_has_been_forwarded_knows_it() -> None:
    key = Key("x", "x")
    assert not key.is_forwarded
    assert inspect.iscoroutinefunction(App.on_event)
    assert "not event.is_forwarded" in inspect.getsource(App.on_event)


def test_line_filters_are_asked_for_when_something_is_drawn() -> None:
    plain, colourless = OwnApp(colourless=False), OwnApp(colourless=True)
    assert not any(isinstance(one, NoColor) for one in plain.get_line_filters())
    assert any(isinstance(one, NoColor) for one in colourless.get_line_filters())
    strip_cache = importlib.import_module("textual._styles_cache")
    assert "get_line_filters()" in inspect.getsource(importlib.import_module("textual.widget")) + (
        inspect.getsource(strip_cache)
    )


@running
async def test_screens_that_are_mounted_ahead_look_like_those_that_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when another theme is chosen while they are not shown."""
    monkeypatch.setattr("kview.tui.app.MOUNT_EVERY_S", 0.001)

    async def drawn(app: KviewApp, pilot: Pilot[int]) -> list[tuple[Sequence[Strip], Color]]:
        screens = []
        for key in "2345671":
            await press(pilot, [key])
            screens.append((drawn_strips(app.screen), app.screen.styles.background))
        return screens

    expected = {}
    for theme in ("light", "dark"):
        async with dashboard(state(CRASH), theme=theme) as (app, pilot):
            expected[theme] = await drawn(app, pilot)
    monkeypatch.setattr("kview.tui.app.MOUNT_AFTER_S", 0.001)
    async with dashboard(state(CRASH)) as (app, pilot):
        await until(pilot, lambda: has_mounted_ahead(app), "the other screens")
        assert app.where() == ("overview", 1)
        for theme in ("light", "dark"):
            app.colours.use(theme)
            assert await drawn(app, pilot) == expected[theme]


def contents(rule: RuleSet) -> tuple[Any, ...]:
    """What a rule says, and what it is for."""
    return rule.selectors, rule.is_default_rules, rule.tie_breaker, repr(rule.styles.get_rules())


@running
async def test_rules_are_parsed_once_for_each_theme_and_are_those_that_textual_makes() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        parsed: dict[str, list[RuleSet]] = {}
        for theme, key in (("light", "3"), ("dark", "5"), ("light", "2"), ("dark", "4")):
            app.colours.use(theme)
            await press(pilot, [key])
            own = app.stylesheet
            textuals = Stylesheet(variables=app.get_css_variables())
            textuals.source = own.source
            textuals.parse()
            assert list(map(contents, own.rules)) == list(map(contents, textuals.rules))
            before = parsed.setdefault(theme, own.rules)
            assert {id(rule) for rule in before} <= {id(rule) for rule in own.rules}
        assert parsed["light"] and parsed["light"][0] is not parsed["dark"][0]


@pytest.mark.parametrize("theme", sorted(own_themes().loaded))
@running
async def test_no_theme_has_a_colour_of_the_terminals_own(theme: str) -> None:
    async with dashboard(state(CRASH), theme=theme, lab=FakeLab()) as (app, pilot):
        for keys in ([], ["slash", "x"], ["escape", "6"], ["ctrl+p"]):
            await press(pilot, keys)
            styles = [segment.style for strip in drawn_strips(app.screen) for segment in strip]
            colours = [colour for style in styles if style for colour in (style.color, style.bgcolor)]
            assert all(colour is None or colour.triplet is not None for colour in colours)
            assert not any(style and style.dim for style in styles)


def test_the_driver_writes_to_the_standard_error_that_python_began_with() -> None:
    assert "self._file = sys.__stderr__" in inspect.getsource(LinuxDriver.__init__)
    assert sys.__stderr__ is None or hasattr(sys.__stderr__, "reconfigure")


@running
async def test_the_strips_on_the_screen_are_those_of_the_compositor() -> None:
    async with dashboard(state(HEALTHY)) as (app, _):
        strips = drawn_strips(app.screen)
        assert len(strips) == 40 and {strip.cell_length for strip in strips} == {120}


def python_files() -> Iterator[Path]:
    """Every file that may use Textual."""
    for folder in ("kview", "tests"):
        yield from (ROOT / folder).rglob("*.py")


def test_private_parts_of_other_objects_are_reached_for_in_one_file_only() -> None:
    private = {name for base in (App, Screen, Static) for name in own_names(base)}
    private |= {name for name in dir(App) + dir(Screen) + dir(Static) if is_private(name)}
    found = []
    for path in python_files():
        text = path.read_text()
        if path in INTERNALS or path == Path(__file__) or ("textual" not in text and "harness" not in text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Attribute) or node.attr not in private:
                continue
            if ast.unparse(node.value) not in ("self", "cls", "os"):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}")
    assert not found


def is_private(name: str) -> bool:
    """Whether a name is private to the class that defines it."""
    return name.startswith("_") and not name.startswith("__")


def own_names(cls: type) -> set[str]:
    """The private names that a class and its bases in Textual define, or set on themselves."""
    return {name for base in cls.__mro__ if from_textual(base) for name in private_names(base)}


def from_textual(cls: type) -> bool:
    """Whether Textual defines it."""
    return cls.__module__.partition(".")[0] == "textual"


@cache
def private_names(cls: type) -> set[str]:
    """The private names of one class: its own, and those set on `self`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    made = {name for name in vars(cls) if is_private(name) and not name.startswith("_abc")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_private(node.attr):
            made |= {node.attr} if ast.unparse(node.value) == "self" else set()
    return made


def own_classes() -> list[type]:
    """Kview's screens, widgets and app."""
    for module in pkgutil.walk_packages(kview.tui.__path__, "kview.tui."):
        importlib.import_module(module.name)
    found, left = set(), [DOMNode]
    while left:
        for cls in left.pop().__subclasses__():
            left.append(cls)
            if cls.__module__.startswith("kview."):
                found.add(cls)
    return sorted(found, key=lambda cls: cls.__qualname__)


TEXTUAL_MAKES = {"_merged_bindings", "_css_type_names", "_reactives", "_computes", "_inherit_bindings"}
TEXTUAL_MAKES |= {"_inherit_css", "_inherit_component_classes", "_css_type_name", "_decorated_handlers"}
"""Names that Textual itself sets on every class derived from its own."""


@pytest.mark.parametrize("cls", own_classes(), ids=lambda cls: cls.__name__)
def test_our_names_are_not_textuals(cls: type) -> None:
    """A private name that Textual uses too would break Textual in ways that are hard to find."""
    meant = {"_handle_exception", "_exit_renderables"} if cls is OwnApp else set()
    assert private_names(cls) & own_names(cls) - TEXTUAL_MAKES <= meant


def test_there_are_classes_to_look_at() -> None:
    assert {KviewApp, OwnApp} < set(own_classes()) and len(own_classes()) > 15


def keys_of(sent: str) -> list[str]:
    """The keys that the parser makes of what a terminal has sent at once."""
    parser = XTermParser()
    found = [*parser.feed(sent), *parser.feed("")]
    return [event.key for event in found if isinstance(event, Key)]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1b1", ["escape", "1"]),
        ("\x1bK", ["escape", "K"]),
        ("\x1b/", ["escape", "slash"]),
        ("\x1b\x1b1", ["escape", "escape", "1"]),
        ("\x1b\r", ["escape", "enter"]),
        ("\x1bj1", ["escape", "j", "1"]),
        ("\x1b[A", ["up"]),
        ("\x1b[1;5D", ["ctrl+left"]),
        ("\x1bOP", ["f1"]),
        ("\x1bf", ["escape+f"]),
    ],
)
def test_escape_and_a_key_at_once_are_two_keys(sent: str, keys: list[str]) -> None:
    tell_escape_apart()
    assert keys_of(sent) == keys


@running
async def test_escape_and_a_letter_act_one_after_the_other_but_move_in_a_line() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["3", "enter", "escape+f"])
        assert len(app.screen_stack) == 1 and "f does nothing here" in text(app)
        await press(pilot, ["slash", *"one", "space", *"two", "home", "escape+f"])
        line = app.screen.query_one("#filter", Input)
        assert line.has_focus and line.value == "one two" and line.cursor_position == 4
