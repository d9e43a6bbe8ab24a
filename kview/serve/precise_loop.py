"""An event loop with precise timers, which the simulated network's latencies of 0.3 ms need.

On Linux, Python's own loop waits for whole milliseconds, rounded up.
"""

import asyncio
import selectors
import sys
from select import select

SHORT_S = 0.003
"""Waits up to this long are precise. They cost one more call of the system."""

FD_SETSIZE = 1024
"""`select` takes descriptors below this number."""

if sys.platform == "linux":

    class _Precise(selectors.EpollSelector):
        """A selector that does short waits with `select` on the one descriptor of epoll."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            """Wait for descriptors that are ready, up to `timeout` seconds."""
            if timeout is not None and 0 < timeout < SHORT_S and self.fileno() < FD_SETSIZE:
                select((self.fileno(),), (), (), timeout)
                timeout = 0
            return super().select(timeout)

    def precise_loop() -> asyncio.AbstractEventLoop:
        """Return a new event loop."""
        return asyncio.SelectorEventLoop(_Precise())

else:
    precise_loop = asyncio.new_event_loop
