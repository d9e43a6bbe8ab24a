"""What a recording has of the subject of a screen, which is read while the screen is open."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from textual.screen import Screen

from kview.model.units import UNKNOWN
from kview.tui.app_of import app_of

T = TypeVar("T")

SHARE = 20
"""Reading takes at most one part in so many of the time, however large the recording is."""

LEAST_MS = 1_000
"""The shortest time between two readings."""


class Recorded(Generic[T]):
    """Reads something from recordings on behalf of a screen. `on_read` is called each time it has changed."""

    def __init__(self, screen: Screen[Any], on_read: Callable[[], None], called: str) -> None:
        """`called` is a name that no other reader of the screen has."""
        self._screen = screen
        self._on_read = on_read
        self._called = called
        self._about: Hashable = None
        self._found: T | None = None
        self._read: Hashable = None
        self._next_ms = UNKNOWN
        self.has_failed = False
        """Whether the last reading failed. It is tried again."""
        self._is_reading = self._is_waiting = False

    def of(
        self, about: Hashable, moment: Hashable, read: Callable[[], Awaitable[T | None]], wall_ms: int
    ) -> T | None:
        """Return what was last read of `about`, None if nothing was, and read it again if `moment` is another
        one than then. `read` returns None if it fails: what was read before stays, and it is tried again."""
        if about != self._about:
            self._about, self._found, self._read, self._next_ms = about, None, None, UNKNOWN
            self._is_reading = self.has_failed = False
        if self._is_reading or moment == self._read:
            return self._found
        if wall_ms < self._next_ms:
            if not self._is_waiting:  # after a jump in time, no other view may come
                self._is_waiting = True
                self._screen.set_timer((self._next_ms - wall_ms) / 1000, self._again)
        else:
            self._is_reading = True
            self._screen.run_worker(
                self._get(read, about, moment, wall_ms), exclusive=True, group=self._called
            )
        return self._found

    async def _get(
        self, read: Callable[[], Awaitable[T | None]], about: Hashable, moment: Hashable, began_ms: int
    ) -> None:
        found = await read()
        if about != self._about or not self._screen.is_attached:
            return
        self._is_reading, self.has_failed = False, found is None
        took_ms = app_of(self._screen).wall_ms() - began_ms
        self._next_ms = began_ms + max(LEAST_MS, SHARE * took_ms)
        if found is not None:
            self._found, self._read = found, moment
        self._on_read()

    def _again(self) -> None:
        self._is_waiting = False
        self._on_read()
