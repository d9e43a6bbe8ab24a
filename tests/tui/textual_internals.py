"""Everything undocumented that the tests use of Textual, each with its reason.

`test_textual_internals.py` fails if one of these changes.
"""

import asyncio
import selectors
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pytest import MonkeyPatch
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.events import Key
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

MODES_AHEAD = {"placement", "topics", "partitions", "groups", "throughput", "events"}


def has_mounted_ahead(app: App[int]) -> bool:
    """Whether the screens of the other number keys are mounted. Textual says it of those that are shown."""
    return set(app._screen_stacks) >= MODES_AHEAD


MOST_DRAWINGS = 100
"""A screen that is not finished after so many drawings has something that moves."""


def drawn_strips(screen: Screen[object]) -> Sequence[Strip]:
    """The screen's lines as they are drawn: Textual only exports pictures, without styles and without the
    spaces at the ends of lines."""
    visible_screen_stack.set(screen.app._background_screens)
    return screen._compositor.render_strips()


@contextmanager
def nothing_composed() -> Iterator[None]:
    """Let apps without a terminal compose no updates: Textual does, and throws them away.

    `drawn_strips` composes the screen that a test reads.
    """
    compose = Compositor.render_update

    def render_update(compositor: Compositor, full: bool = False, **how: Any) -> Any:
        if full:  # a picture
            return compose(compositor, full, **how)
        compositor._dirty_regions.clear()
        return None

    with MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", render_update)
        yield


class _Watched(selectors.DefaultSelector):
    """A selector that knows when its event loop has nothing left to do."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[None]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """A loop that has callbacks to run asks with a timeout of 0."""
        is_idle = timeout is None or timeout > 0
        found = super().select(0 if self.waiting else timeout)
        if is_idle and not found:
            for future in self.waiting:
                if not future.done():
                    future.set_result(None)
            self.waiting.clear()
        return found


class IdleLoop(asyncio.SelectorEventLoop):
    """An event loop that says when nothing is left to do until a timer or another thread says something."""

    def __init__(self) -> None:
        self._watched = _Watched()
        super().__init__(self._watched)

    async def idle(self) -> None:
        """Wait until then."""
        future = self.create_future()
        self._watched.waiting.append(future)
        await future


class IdlePilot(Pilot[int]):
    """A pilot that goes on as soon as the app has nothing left to do.

    Textual's waits for 20 ms in which the process needs little of the processor, three times for a key. It
    takes a process that others keep from the processor for one that has nothing to do.
    """

    async def pause(self, delay: float | None = None) -> None:
        """Let the app do and draw all that it has to, but for what waits for a timer."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, IdleLoop), "a test of the dashboard runs with `harness.run`"
        for _ in range(MOST_DRAWINGS):
            await loop.idle()
            if not self.app.is_running or not _has_to_draw(self.app.screen):
                return
            self.app.screen._on_timer_update()
        raise AssertionError("a screen that is never finished")

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.app.post_message(_pressed(key))
            await self.pause()

    async def resize_terminal(self, width: int, height: int) -> None:
        """Resize the terminal. Textual waits a hundredth of a second for the last of several sizes."""
        await super().resize_terminal(width, height)
        while self.app._resize_timer is not None:
            await asyncio.sleep(0.001)
        await self.pause()


def _has_to_draw(screen: Screen[Any]) -> bool:
    """Whether something waits for the screen's timer."""
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )


def _pressed(key: str) -> Key:
    """What Textual makes of a key that a pilot presses."""
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    character: str | None
    try:
        character = unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(name, name)))
    except KeyError:
        character = name if len(name) == 1 else None
    return Key(name, character)
