"""The key file: other keys for actions, what it may not say, and what the screen says then."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.config.key_file import KeyLine, read_key_file
from kview.errors import BadUse
from kview.tui.actions import Action, Where, conflict
from kview.tui.key_names import key_name, key_of
from kview.tui.keymap import keys_of
from kview.tui.keys import ACTIONS
from tests.errors import raises_saying
from tests.tui.harness import CRASH, FakeLab, FakeTimeline, dashboard, press, running, state, text, until

FILE = """# my keys
quit = "Q"

"sort" = ["f6", "d"]
pause = "h"
crash = "ctrl+k"
find = "space"
step-back = "("
"""


def keys_file(folder: Path, text: str) -> Path:
    path = folder / "keys.toml"
    path.write_text(text)
    return path


@running
async def the_screen_has_the_keys_of(path: Path) -> None:
    lab = FakeLab()
    keys = keys_of(read_key_file(path), path)
    async with dashboard(state(CRASH), lab=lab, keys=keys, timeline=FakeTimeline(), size=(200, 50)) as (
        app,
        pilot,
    ):
        last = text(app).splitlines()[-1]
        for shown in ("^k crash", "h pause", "Q quit", "space go to", "? help"):
            assert shown in last, last
        await press(pilot, ["tab", "f6"])
        assert "by topic ▲" in text(app)
        await press(pilot, ["d"])
        assert "by p ▼" in text(app)
        for key in ("s", "q", "K"):
            await press(pilot, [key])
            assert f"{key} does nothing here" in text(app)
        await press(pilot, ["ctrl+k"])
        await until(pilot, lambda: lab.commands, "the fault")
        await press(pilot, ["question_mark"])
        help = " ".join(text(app).split())
        for entry in ("F6 d sort", "^k crash", "h pause", "( step back"):
            assert entry in help
        assert app.is_running


def test_a_key_file_gives_actions_other_keys_everywhere(tmp_path: Path) -> None:
    the_screen_has_the_keys_of(keys_file(tmp_path, FILE))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('a = 1\nquit = "Q', "line 2: this is not valid TOML"),
        ('\nqiut = "Q"', "line 2: there is no action named 'qiut': did you mean quit?"),
        ('zzzzzz = "Q"', "line 1: there is no action named 'zzzzzz': kview config --keys lists"),
        ('interrupt = "Q"', "line 1: there is no action named 'interrupt'"),
        ("quit = 3", "line 1: 'quit' needs a key, or a list of keys"),
        ("\n\nquit = []", "line 3: 'quit' needs a key"),
        ('[keys]\nquit = "Q"', "line 1: \\[keys\\] is a heading, and the key file has no sections"),
        ('quit = "hyper+x"', "line 1: quit is set to 'hyper\\+x', which is not a key"),
        ('quit = ""', "line 1: quit is set to '', which is not a key"),
        ('# other\nsort = "y"', "line 2: sort and copy both use the key y: give one"),
        ('next-list = "t"', "line 1: next-list and theme both use the key t"),
        ('quit = "ctrl+c"', "line 1: quit and interrupt both use the key \\^c"),
    ],
)
def test_a_wrong_key_file_says_the_place_and_the_names(tmp_path: Path, written: str, said: str) -> None:
    path = keys_file(tmp_path, written)
    with raises_saying(BadUse, f"keys.toml, {said}") as caught:
        keys_of(read_key_file(path), path)
    assert caught.value.exit_code == 2


def test_without_a_key_file_the_keys_are_those_of_the_table(tmp_path: Path) -> None:
    keys = keys_of(read_key_file(tmp_path / "none.toml"), tmp_path)
    assert keys.textual() == {} and keys.of("quit") == ("q",)


def test_keys_may_change_places() -> None:
    lines = [KeyLine(1, "sort", ("r",)), KeyLine(2, "reverse", ("s",))]
    keys = keys_of(lines, Path("keys.toml"))
    assert keys.of("sort") == ("r",) and keys.of("reverse") == ("s",)


def test_actions_of_different_screens_may_share_a_key() -> None:
    one = Action("one", ("x",), "a", "a", where=Where.PLACEMENT)
    assert conflict([one, Action("two", ("x",), "b", "b", where=Where.THROUGHPUT)], {}) is None
    for where in (Where.APP, Where.TABLE, Where.SCREEN, Where.PLACEMENT):
        assert conflict([one, Action("two", ("x",), "b", "b", where=where)], {}) is not None


@pytest.mark.parametrize("action", ACTIONS, ids=[f"{action.name} {action.run}" for action in ACTIONS])
def test_every_key_of_the_table_can_be_written_as_it_is_shown(action: Action) -> None:
    for key in action.keys:
        if not key.startswith("shift+"):
            assert key_of(key_name(key) if len(key_name(key)) == 1 or "^" in key_name(key) else key) == key


@given(st.text(max_size=12))
def test_any_written_key_is_a_key_or_none(written: str) -> None:
    key = key_of(written)
    assert not key or key_name(key)
