"""Draw failovers as animated SVG pictures for the README: `python -m tests.tui.animate [FOLDER]`.

The dashboard is the real one, on the engine, and the keys are pressed as a person presses them. What several
frames have in common is in the file once.
"""

import asyncio
import re
import sys
from pathlib import Path
from typing import NamedTuple

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.school.camera.camera import Camera
from tests.tui.harness import SEEN_AFTER_MS, EngineLab, FakeClock, dashboard, press
from tests.tui.pictures import FOLDER, with_spaces

ANIMATED = FOLDER / "animated"

SIZE = (100, 30)
SECONDS_BEFORE = 30
FRAME_S, LAST_S = 1.3, 4.0
"""How long a frame, and the last one, is shown: a second of the cluster takes a little longer to be read."""


class Act(NamedTuple):
    """Keys that are pressed, and how many seconds of the cluster are then shown, every `every_s` seconds."""

    keys: list[str]
    seconds: int
    every_s: int = 1


ANIMATIONS: dict[str, list[Act]] = {
    "leader-crash": [
        Act([], 1),
        Act([*["down"] * 4, "K"], 12, 2),
        Act(["B"], 6, 3),
    ],
    "group-rebalance": [
        Act(["8", "down", "down", "down"], 1),
        Act(["minus", "enter"], 8, 2),
        Act(["escape", "x"], 1),
        Act(["enter"], 56, 8),
    ],
}


class _Stage:
    """The default cluster, its views, and the dashboard's clock."""

    def __init__(self) -> None:
        self.lab = EngineLab()
        self._camera, self._state = Camera(self.lab.cluster), State()
        self.view = self.on(1)
        for _ in range(SECONDS_BEFORE):
            self.view = self.on(1)

    def on(self, seconds: int) -> View:
        """Let time pass, observed once a second."""
        for _ in range(seconds):
            self.lab.cluster.run_until(self.lab.cluster.kernel.now_us + 1_000_000)
            self._state, self.view = step(self._state, self._camera.snapshot())
        return self.view


async def frames(acts: list[Act]) -> list[str]:
    """Play an animation, and return its frames as SVG."""
    stage, made = _Stage(), []
    async with dashboard(stage.view, size=SIZE, lab=stage.lab, theme="dark") as (app, pilot):
        clock = app.clock_ms
        assert isinstance(clock, FakeClock)
        for act in acts:
            for key in act.keys:
                await press(pilot, [key])
                await pilot.pause(0.1)
            for at in range(0, act.seconds, act.every_s):
                if at:
                    app.feed.show(stage.on(act.every_s))  # type: ignore[attr-defined]
                    clock.now_ms = stage.view.snapshot.observation.ended_ms + SEEN_AFTER_MS
                    app._tick()
                await pilot.pause(0.2)
                made.append(with_spaces(app.export_screenshot(title="kview")))
            stage.on(1)
            app.feed.show(stage.view)  # type: ignore[attr-defined]
            await pilot.pause(0.1)
    return made


_ELEMENT = re.compile(r"<rect fill=[^>]*shape-rendering[^>]*/>|<text class=\"[^\"]*-r\d+\".*?</text>")
_STYLE = re.compile(r"\.(terminal-\d+)-(r\d+) \{([^}]*)\}")
_CLIP = re.compile(r' clip-path="[^"]*"')


def animated(svgs: list[str]) -> str:
    """Return an SVG that shows these pictures one after the other, again and again."""
    seen: dict[str, int] = {}
    styles: dict[str, str] = {}
    for number, svg in enumerate(svgs):
        names = {
            f"{name}-{rule}": styles.setdefault(style.strip(), f"s{len(styles)}")
            for name, rule, style in _STYLE.findall(svg)
        }
        for element in _ELEMENT.findall(svg):
            plain = _CLIP.sub("", element)
            for old in re.findall(r'class="([^"]*)"', plain):
                plain = plain.replace(f'class="{old}"', f'class="{names[old]}"')
            seen[plain] = seen.get(plain, 0) | 1 << number
    total_s = FRAME_S * (len(svgs) - 1) + LAST_S
    masks = sorted(set(seen.values()))
    css = [f".{name}{{{style}}}" for style, name in styles.items()]
    css += [_keyframes(mask, len(svgs), total_s) for mask in masks]
    first = svgs[0]
    begin = first[first.index("<svg") : first.index(">", first.index("<svg")) + 1]
    window = first[first.index('<rect fill="#292929"') : first.index("</g>", first.index("<circle")) + 4]
    matrix = re.search(r'<g transform="translate\([^)]*\)" clip', first)
    assert matrix is not None
    where = matrix[0].removesuffix(" clip")
    body = "".join(
        f'<g class="m{mask:x}">{"".join(each for each in seen if seen[each] == mask and each[1] == kind)}</g>'
        for kind in "rt"
        for mask in masks
    )
    window = re.sub(r'class="[^"]*"', 'style="font:bold 18px arial"', window)
    fonts = "text{font-family:'Fira Code',Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:20px}"
    return f"{begin}<style>{fonts}{''.join(css)}</style>{window}{where}>{body}</g></svg>\n"


def _keyframes(mask: int, frames: int, total_s: float) -> str:
    """Return the style that shows a group in the frames of `mask`."""
    if mask == (1 << frames) - 1:
        return ""
    shown = ["visible" if mask >> number & 1 else "hidden" for number in range(frames)]
    steps = [
        f"{100 * number * FRAME_S / total_s:.2f}%{{visibility:{shown[number]}}}"
        for number in range(frames)
        if not number or shown[number] != shown[number - 1]
    ]
    return (
        f"@keyframes k{mask:x}{{{''.join(steps)}100%{{visibility:{shown[-1]}}}}}"
        f".m{mask:x}{{animation:k{mask:x} {total_s:g}s step-end infinite}}"
    )


def main(folder: Path) -> None:
    """Write all animations to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, acts in ANIMATIONS.items():
        path = folder / f"{name}.svg"
        path.write_text(animated(asyncio.run(frames(acts))))
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ANIMATED)
