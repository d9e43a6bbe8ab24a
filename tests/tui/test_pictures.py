"""The SVG pictures show what the screens look like now."""

import re
from pathlib import Path

import pytest

from tests.tui.harness import run
from tests.tui.pictures import FOLDER, PICTURES, picture

ROOT = Path(__file__).resolve().parents[2]

KEPT = sorted(path.stem for path in FOLDER.glob("*.svg"))


def of_the_readme() -> set[str]:
    """The names of the pictures in the README."""
    return set(re.findall(r"\(tests/tui/pictures/([\w-]+)\.svg\)", (ROOT / "README.md").read_text()))


def test_the_readme_has_pictures_and_each_can_be_made() -> None:
    assert of_the_readme()
    assert of_the_readme() <= set(KEPT) <= set(PICTURES)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in of_the_readme() else pytest.mark.slow) for name in KEPT]
)
def test_a_kept_picture_is_up_to_date(name: str, pytestconfig: pytest.Config) -> None:
    path, drawn = FOLDER / f"{name}.svg", run(picture(name))
    if pytestconfig.getoption("--update-golden"):
        path.write_text(drawn)
    if path.read_text() != drawn:
        pytest.fail(f"{path.name} is out of date (--update-golden)", pytrace=False)
