"""Re-reads the security settings, because passwords and certificates are replaced while kview runs."""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kview.config.security import Security
from kview.errors import KviewError
from kview.observe.access import Access, access

if TYPE_CHECKING:
    from kview.observe.loop import Loop

_log = logging.getLogger(__name__)

REREAD_S = 1.0
"""Links that are refused at about the same time share one reading."""


class Renewal:
    """The access in force, and how to read it again. `reread` is None if it cannot change."""

    def __init__(
        self,
        first: Access | None = None,
        reread: Callable[[], Security] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.access = first or Access()
        self._reread = reread
        self._monotonic = monotonic
        self._again_at_s = 0.0
        self._reading: Any = None

    async def renew(self, loop: "Loop") -> None:
        """Read the settings again, unless that was done just now.

        If they cannot be read, for example because the file is being written, the current ones stay in force.
        So they do if the protocol is another one: a file that is empty for a moment, or a pipe that has been
        read, says PLAINTEXT.
        """
        if self._reading is None and self._reread is not None and self._monotonic() >= self._again_at_s:
            read = self._reread
            self._reading = loop.begin(lambda: self._renew(loop, read))
        if self._reading is not None:
            await self._reading

    async def _renew(self, loop: "Loop", read: Callable[[], Security]) -> None:
        present = self.access

        def prepared() -> Access:
            security = read()
            if security.protocol is not present.security.protocol:
                _log.warning("the security settings read again are for another protocol: they are not used")
                return present
            return present if security == present.security else access(security)

        try:
            self.access = await loop.in_thread(prepared, "settings")
        except KviewError as error:
            _log.warning("the security settings cannot be read again: %s", error)
        finally:
            self._again_at_s = self._monotonic() + REREAD_S
            self._reading = None
