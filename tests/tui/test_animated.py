"""The animated pictures show what the screens look like now, one frame at a time."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kview.school.files import lesson_files, lesson_of
from tests.tui.animate import CELL, IN_README, SIZE, Frame, animated, frames
from tests.tui.harness import run

MOST_BYTES, MOST_FRAMES = 500_000, 60
ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
ROW = 24.4
"""The height of a row of cells in Textual's pictures."""

KEYFRAMES = re.compile(r"@keyframes (k\w+)\{((?:[\d.]+%\{[^}]*\})*)\}")
STEP = re.compile(r"([\d.]+)%\{visibility:(\w+)")

Element = tuple[str, ...]
"""Style, place and text of something drawn: no two pictures name their styles alike."""


def rules(style: str) -> dict[str, str]:
    """What a style sheet says of each class."""
    return {name: said.strip() for name, said in re.findall(r"\.([\w-]+)\s*\{([^}]*)\}", style)}


def drawn(group: ElementTree.Element, styles: dict[str, str]) -> set[Element]:
    """What is drawn in a group, and in those in it."""
    made = set()
    for one in group.iter():
        is_text = one.tag == f"{SVG}text"
        if (not is_text and one.tag != f"{SVG}rect") or (is_text and not (one.text or "").strip()):
            continue
        where = [one.get(name, "") for name in ("x", "y", "width", "height", "textLength", "fill")]
        made.add((one.tag, styles.get(one.get("class", ""), ""), *where, one.text or ""))
    return made


class Played:
    """An animated picture, as a browser shows it."""

    def __init__(self, svg: str) -> None:
        root = ElementTree.fromstring(svg)
        style = root.find(f"{SVG}style")
        assert style is not None and style.text is not None
        self._rules = rules(style.text)
        self._keyframes: dict[str, list[tuple[float, bool]]] = {
            name: [(float(at), how == "visible") for at, how in STEP.findall(steps)]
            for name, steps in KEYFRAMES.findall(style.text)
        }
        self._groups = [
            (group.get("class", ""), drawn(group, self._rules))
            for group in root.iter(f"{SVG}g")
            if re.fullmatch("m[0-9a-f]+", group.get("class", ""))
        ]

    def at(self, percent: float) -> set[Element]:
        """What is seen when so much of the time has passed."""
        return set().union(*(made for name, made in self._groups if self._is_seen(name, percent)))

    def _is_seen(self, name: str, percent: float) -> bool:
        if "animation" not in self._rules.get(name, ""):
            return True
        *_, (_, is_seen) = (one for one in self._keyframes[f"k{name[1:]}"] if one[0] <= percent)
        return is_seen

    @property
    def percents(self) -> list[float]:
        """When something changes, from 0 on."""
        return sorted({at for steps in self._keyframes.values() for at, _ in steps} - {100.0})


def screen(seen: set[Element]) -> list[str]:
    """The lines that are seen. Fails if two texts lie on each other."""
    cells = [[" "] * SIZE[0] for _ in range(SIZE[1])]
    for tag, _, x, y, _, _, length, _, text in seen:
        if tag != f"{SVG}text":
            continue
        row, column = int(float(y) // ROW), round(float(x) / CELL)
        assert round(float(length) / CELL) == len(text)
        for at, character in enumerate(text.replace("\xa0", " "), column):
            assert character == " " or cells[row][at] == " ", f"{text!r} lies on {''.join(cells[row])!r}"
            cells[row][at] = character if character != " " else cells[row][at]
    return ["".join(row).rstrip() for row in cells]


def captions_missing(name: str, screens: list[list[str]]) -> list[str]:
    """The captions of a lesson that are in none of the screens: {figures} may have any value."""
    texts = ["".join("".join(each).split()) for each in screens]
    missing = []
    for step in lesson_of(name).steps:
        parts = re.split(r"\{[^}]*\}", step.caption)
        wanted = ".{1,40}?".join(re.escape("".join(part.split())) for part in parts)
        if not any(re.search(wanted, text) for text in texts):
            missing.append(step.caption)
    return missing


@pytest.mark.parametrize("name", IN_README)
def test_the_readme_shows_it_with_the_captions_of_the_lesson(name: str) -> None:
    path = IN_README[name]
    assert f"({path.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
    played = Played(path.read_text())
    screens = [screen(played.at(percent)) for percent in played.percents]
    assert captions_missing(name, screens) == [], f"{path.name} is out of date (--update-golden)"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*IN_README, *list(lesson_files())[::10]}))
def test_a_played_lesson_is_what_its_frames_show(name: str, pytestconfig: pytest.Config) -> None:
    taken: list[Frame] = run(frames(name))
    svg = animated(taken)
    assert len(taken) <= MOST_FRAMES and len(svg.encode()) < MOST_BYTES
    played, passed_s, whole_s = Played(svg), 0.0, sum(frame.seconds for frame in taken)
    for frame in taken:
        seen = played.at(100 * (passed_s + frame.seconds / 2) / whole_s)
        assert screen(seen) == [line.rstrip() for line in frame.lines]
        still = ElementTree.fromstring(frame.svg)
        style = still.find(f"{SVG}style")
        assert style is not None and style.text is not None
        assert seen ^ drawn(still.findall(f"{SVG}g")[-1], rules(style.text)) == set()
        passed_s += frame.seconds
    assert captions_missing(name, [frame.lines for frame in taken]) == []
    if (path := IN_README.get(name)) is None:
        return
    if pytestconfig.getoption("--update-golden"):
        path.write_text(svg)
    if path.read_text() != svg:
        pytest.fail(f"{path.name} is out of date (--update-golden)", pytrace=False)
