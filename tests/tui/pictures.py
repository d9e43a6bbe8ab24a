"""Draw the screens as SVG pictures, in the states of the golden files: `python -m tests.tui.pictures
[FOLDER]`."""

import re
import sys
from collections.abc import Callable
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

from kview.derive.view import View
from kview.tui.app import KviewApp
from tests.tui.fleets import fleet, troubled
from tests.tui.harness import (
    BACK,
    CRASH,
    FENCED,
    HEALTHY,
    SECONDS,
    FakeLab,
    FakeTimeline,
    dashboard,
    press,
    run,
    state,
    text,
    until,
)
from tests.tui.moments import PLAYED, REPLAY, paused
from tests.tui.throughput_states import INCIDENT, throughput_state

MOMENTS: dict[str, Callable[[], View]] = {
    "paused": paused,
    "played": lambda: paused(moment=PLAYED),
}

FOLDER = Path(__file__).parent / "pictures"

PLAIN = ""
"""The theme of pictures without colours."""

PICTURES: dict[str, tuple[str, tuple[int, int], str, list[str]]] = {
    "overview-healthy": (HEALTHY, (120, 40), "dark", []),
    "overview-crash": (CRASH, (120, 40), "dark", []),
    "overview-fenced": (FENCED, (120, 40), "dark", []),
    "overview-back": (BACK, (120, 40), "dark", []),
    "overview-crash-light": (CRASH, (120, 40), "light", []),
    "overview-crash-small": (CRASH, (80, 24), "dark", []),
    "overview-crash-large": (CRASH, (200, 50), "dark", []),
    "placement-fenced": (FENCED, (120, 40), "dark", ["2", "right"]),
    "group-crash": (CRASH, (120, 40), "dark", ["5", "enter"]),
    "topics-crash": (CRASH, (120, 40), "dark", ["3"]),
    "partition-crash": (CRASH, (120, 40), "dark", ["4", "enter"]),
    "incident-fenced": (FENCED, (120, 40), "dark", ["7", "enter"]),
    "throughput-incident": (INCIDENT, (120, 40), "dark", ["6"]),
    "fleet-trouble": ("fleet", (120, 40), "dark", []),
    "time-paused": ("paused", (120, 40), "dark", []),
    "time-paused-light": ("paused", (120, 40), "light", []),
    "time-paused-plain": ("paused", (80, 24), PLAIN, []),
    "time-asked": ("paused", (80, 24), "dark", ["at"]),
    "time-played": ("played", (80, 24), "dark", []),
}


async def picture(name: str) -> str:
    """Draw one picture, as SVG."""
    at, size, theme, keys = PICTURES[name]
    options: dict[str, Any] = {"theme": theme or None, "no_color": not theme, "size": size}
    if at == "fleet":
        async with fleet(*troubled(), **options) as (app, _, _):
            return with_spaces(app.export_screenshot(title="kview"))
    if at in MOMENTS:
        view, replay = MOMENTS[at](), at == "played"
        options |= {"timeline": FakeTimeline(replay)} | ({"source": REPLAY} if replay else {})
    else:
        view = state(at) if at in SECONDS else throughput_state(at)
        options |= {"lab": FakeLab()}
    async with dashboard(view, **options) as (app, pilot):
        for key in keys:
            before = text(app)
            await press(pilot, [key])
            await until(pilot, lambda before=before: text(app) != before, f"the screen after {key}")  # type: ignore[misc]
            await until(pilot, partial(is_settled, app, [""]), "a screen that has settled")
        return with_spaces(app.export_screenshot(title="kview"))


def is_settled(app: KviewApp, last: list[str]) -> bool:
    """Whether the screen is the same as at the last call; `last` keeps that one."""
    before, last[0] = last[0], text(app)
    return last[0] == before


def with_spaces(svg: str) -> str:
    """Replace leading spaces of texts by a position, because some viewers drop such spaces, and all spaces
    between the dots of a plot, because most fonts take these dots from another one, of another width."""

    def moved(found: re.Match[str]) -> str:
        x, length = float(found["x"]), float(found["length"])
        cell = length / len(unescape(found["spaces"] + found["text"]))
        parts = _SPACES.split(found["text"]) if _DOTS.search(found["text"]) else [found["text"]]
        pieces, at = [], len(unescape(found["spaces"]))
        for part in parts:
            cells = len(unescape(part))
            if part.replace(SPACE, ""):
                pieces.append(
                    f'{found["head"]}x="{x + at * cell:g}"{found["between"]}textLength="{cells * cell:g}"'
                    f"{found['rest']}>{part}</text>"
                )
            at += cells
        return "".join(pieces)

    return _TEXT.sub(moved, svg)


SPACE = "&#160;"
_TEXT = re.compile(
    r'(?P<head><text class="[^"]*" )x="(?P<x>[\d.]+)"(?P<between>[^>]*)'
    r'textLength="(?P<length>[\d.]+)"(?P<rest>[^>]*)>'
    rf"(?P<spaces>(?:{SPACE})*)(?P<text>[^<\n]+)</text>"
)
_DOTS = re.compile("[\u2801-\u28ff]")
_SPACES = re.compile(f"((?:{SPACE})+)")


def main(folder: Path) -> None:
    """Write all pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        path = folder / f"{name}.svg"
        path.write_text(run(picture(name)))
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
