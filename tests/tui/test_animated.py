"""The animated pictures show what the screens look like now."""

import asyncio
from pathlib import Path

import pytest

from tests.tui.animate import ANIMATED, ANIMATIONS, animated, frames

MOST_BYTES = 500_000
ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_shows_them_and_they_are_small() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in ANIMATIONS:
        path = ANIMATED / f"{name}.svg"
        assert f"({path.relative_to(ROOT)})" in readme
        assert path.stat().st_size < MOST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", ANIMATIONS)
def test_an_animation_is_up_to_date(name: str, pytestconfig: pytest.Config) -> None:
    path, drawn = ANIMATED / f"{name}.svg", animated(asyncio.run(frames(ANIMATIONS[name])))
    if pytestconfig.getoption("--update-golden"):
        path.write_text(drawn)
    if path.read_text() != drawn:
        pytest.fail(f"{path.name} is out of date (--update-golden)", pytrace=False)
