"""Draw lessons as animated SVG pictures: `python -m tests.tui.animate [LESSON…] [FOLDER]`.

Without a lesson, all of them are drawn. Without a folder, those of the README are drawn where it shows them.
The dashboard is the real one, on the engine, and the lesson's own keys are pressed. A frame stays as long as
it takes to read what is new in its caption.
"""

import re
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import NamedTuple

from kview.school.conduct import Conduct, Phase
from kview.school.figures import parse
from kview.school.files import lesson_files
from kview.school.shows.lesson import LessonShow
from kview.tui.faults import FAULTS_BY_KEY
from kview.tui.text import Role
from kview.tui.widgets.caption import Paragraph
from tests.school.shows.lesson_stage import Class, lesson, shown_demo
from tests.tui.harness import drawn_lines, run
from tests.tui.pictures import FOLDER, is_settled, with_spaces

ANIMATED = FOLDER / "animated"

IN_README = {"leader-crash": ANIMATED / "leader-crash.svg", "groups": ANIMATED / "group-rebalance.svg"}
"""The lessons whose pictures are kept, and where."""

SIZE = (100, 30)
FRAME_S = 1.3
"""How long a frame is shown in which there is nothing to read."""
WORDS_A_SECOND = 3.5
"""The pace of somebody who looks from the caption to the panels and back."""
CELL = 12.2
"""The width of a cell in Textual's pictures."""
QUIET_S = 4
"""After so many seconds of the cluster without a change there is a frame that shows the time pass."""
MOST_BETWEEN = 4
"""The most frames between a step's first and its last one."""
SEEN_AFTER_MS = 300
"""How old a view is when its frame is taken."""


class Frame(NamedTuple):
    """A frame: the picture, the screen's lines, what its caption says, and how long it is shown."""

    svg: str
    lines: list[str]
    said: tuple[str, ...]
    seconds: float = FRAME_S


class _Camera:
    """Takes the frames of a lesson."""

    def __init__(self, taken: Class) -> None:
        self._taken = taken
        self._frames: list[Frame] = []
        self._changes: list[Frame] = []
        """The frames since the step began that show a change."""
        self._quiet: list[Frame] = []
        """Those that only show that time passes."""

    async def take(self) -> Frame | None:
        """Take a frame. Returns None if it looks like the last one."""
        taken, last = self._taken, [""]
        while not is_settled(taken.app, last):
            taken.app._tick()
            await taken.pilot.pause()
        drawn, caption = drawn_lines(taken.app), taken.app.teaching.caption
        if caption is None or (self._frames and self._frames[-1].lines == drawn):
            return None
        svg = with_spaces(taken.app.export_screenshot(title="kview"))
        self._frames.append(Frame(svg, drawn, tuple(map(_said, caption.paragraphs))))
        return self._frames[-1]

    async def take_between(self, is_change: bool) -> None:
        """Take a frame that may be left out if its step has too many."""
        if (frame := await self.take()) is not None:
            (self._changes if is_change else self._quiet).append(frame)

    def end_step(self) -> None:
        """Leave out what is too much of a step: frames in which nothing changes first."""
        changes = _evenly(self._changes, MOST_BETWEEN)
        kept = [*changes, *_evenly(self._quiet, MOST_BETWEEN - len(changes))]
        between = [*self._changes, *self._quiet]
        self._frames = [frame for frame in self._frames if frame not in between or frame in kept]
        self._changes, self._quiet = [], []

    def timed(self) -> Iterator[Frame]:
        """Yield the frames with the time that each is shown."""
        before: tuple[str, ...] = ()
        for frame in self._frames:
            words = sum(len(text.split()) for text in frame.said if text not in before)
            yield frame._replace(seconds=round(FRAME_S + words / WORDS_A_SECOND, 1))
            before = frame.said


def _evenly(taken: list[Frame], most: int) -> list[Frame]:
    """Return at most so many frames, evenly."""
    return taken if len(taken) <= most else [taken[at * len(taken) // most] for at in range(most)]


def _said(paragraph: Paragraph) -> str:
    """Return what has to be read: a countdown has not."""
    return "" if paragraph.role is Role.DIM else paragraph.text


async def frames(name: str) -> list[Frame]:
    """Play a lesson, and return its frames."""
    async with lesson(name, size=SIZE, theme="dark") as taken:
        app, show, camera = taken.app, shown_demo(taken.app), _Camera(taken)
        assert isinstance(show, LessonShow)
        app.clock_ms = app.wall_ms = lambda: taken.demos.now_ms() + SEEN_AFTER_MS
        conduct = show.conduct
        while conduct.phase is not Phase.OVER:
            await _step(taken, conduct, camera)
            await taken.press("space")
            await taken.look()
        await camera.take()
    return list(camera.timed())


async def _step(taken: Class, conduct: Conduct, camera: _Camera) -> None:
    """Play a step until nothing more comes of it."""
    question = conduct.staged.step.question
    await camera.take()
    if conduct.phase is Phase.QUESTION:
        assert question is not None
        await taken.press(str(question.right))
        await camera.take()
    if conduct.phase is Phase.PRESS:
        key = conduct.staged.key
        assert key is not None
        fault = next(one for one in FAULTS_BY_KEY.values() if one.kind is key.kind)
        if taken.app.faults.would_do(key):
            await taken.press(taken.app.keys.name(fault.name))
        else:
            taken.app.faults.give(key)
        assert conduct.phase is not Phase.PRESS, conduct.staged
    seen, quiet_s = _important(conduct), 0
    while conduct.phase is not Phase.DONE:
        await taken.second()
        is_change, quiet_s = _important(conduct) != seen, quiet_s + 1
        if is_change or quiet_s == QUIET_S:
            await camera.take_between(is_change)
            quiet_s = 0
        seen = _important(conduct)
    await camera.take()
    camera.end_step()


def _important(conduct: Conduct) -> Hashable:
    """Return what the step is about: states, leaders, replicas, and what has come true, but no counts."""
    moment, step = conduct.moment, conduct.staged.step
    assert moment is not None
    figures = [parse(text.split())[0] for text in (*step.expect, *step.compare)]
    values = [figure.value(moment) for figure in figures]
    watched = [value if not isinstance(value, int) or value < 100 else None for value in values]
    brokers = moment.view.snapshot.brokers
    return tuple(watched), tuple(brokers.state.tolist()), tuple(map(str, conduct.played[-1].met))


_ELEMENT = re.compile(r"<rect fill=[^>]*shape-rendering[^>]*/>|<text class=\"[^\"]*-r\d+\".*?</text>")
_STYLE = re.compile(r"\.(terminal-\d+)-(r\d+) \{([^}]*)\}")
_CLIP = re.compile(r' clip-path="[^"]*"')


def animated(taken: list[Frame]) -> str:
    """Return an SVG that shows these frames one after the other, again and again.

    What several frames have in common is in it once. Where pictures do not move, it shows the first frame.
    """
    seen: dict[str, int] = {}
    styles: dict[str, str] = {}
    for number, svg in enumerate(frame.svg for frame in taken):
        names = {
            f"{name}-{rule}": styles.setdefault(style.strip(), f"s{len(styles)}")
            for name, rule, style in _STYLE.findall(svg)
        }
        for element in _ELEMENT.findall(svg):
            plain = _CLIP.sub("", element)
            for old in re.findall(r'class="([^"]*)"', plain):
                plain = plain.replace(f'class="{old}"', f'class="{names[old]}"')
            seen[plain] = seen.get(plain, 0) | 1 << number
    seconds = [frame.seconds for frame in taken]
    masks = sorted(set(seen.values()))
    css = [f".{name}{{{style}}}" for style, name in styles.items()]
    css += [_keyframes(mask, seconds) for mask in masks]
    css.append(
        ".passed{fill:#5aa9ff;transform:scaleX(0);transform-origin:9px 0;"
        f"animation:passed {sum(seconds):.1f}s linear infinite}}"
        "@keyframes passed{to{transform:scaleX(1)}}"
        "@media(prefers-reduced-motion:reduce){*{animation:none!important}}"
    )
    first = taken[0].svg
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
    passed = f'<rect class="passed" x="9" y="37" width="{CELL * SIZE[0]:g}" height="2"/>'
    return f"{begin}<style>{fonts}{''.join(css)}</style>{window}{passed}{where}>{body}</g></svg>\n"


def _keyframes(mask: int, seconds: list[float]) -> str:
    """Return the style that shows a group in the frames of `mask`."""
    if mask == (1 << len(seconds)) - 1:
        return ""
    shown = ["visible" if mask >> number & 1 else "hidden" for number in range(len(seconds))]
    total_s = sum(seconds)
    steps = [
        f"{100 * sum(seconds[:number]) / total_s:.2f}%{{visibility:{shown[number]}}}"
        for number in range(len(seconds))
        if not number or shown[number] != shown[number - 1]
    ]
    return (
        f"@keyframes k{mask:x}{{{''.join(steps)}100%{{visibility:{shown[-1]}}}}}"
        f".m{mask:x}{{visibility:{shown[0]};animation:k{mask:x} {total_s:.1f}s step-end infinite}}"
    )


def main(words: list[str]) -> None:
    """Write the lessons that are named, or all, to a folder."""
    known = list(lesson_files())
    names = [word for word in words if word in known]
    folder = next((Path(word) for word in words if word not in known), None)
    for name in names or (known if folder else IN_README):
        path = folder / f"{name}.svg" if folder else IN_README.get(name, ANIMATED / f"{name}.svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        taken = run(frames(name))
        path.write_text(animated(taken))
        print(path, f"{len(taken)} frames, {sum(f.seconds for f in taken):.0f} s, {path.stat().st_size:,} B")


if __name__ == "__main__":
    main(sys.argv[1:])
