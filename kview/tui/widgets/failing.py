"""Logs why a panel could not be drawn, without filling the log."""

import logging

_log = logging.getLogger(__name__)

Place = tuple[type[Exception], str, int]
"""What makes an error distinct: its type, and the file and line that raised it. The text of an error does not
count, because it may contain an age, which differs at every attempt. So there are at most as many distinct
errors as there are lines of code."""


class FailureLog:
    """Logs each distinct error of a panel once, until the panel is drawn again."""

    def __init__(self, panel: str) -> None:
        self._panel = panel
        self._logged: set[Place] = set()

    def failed(self, error: Exception) -> None:
        """Log that the panel could not be drawn because of `error`."""
        place = _place(error)
        if place not in self._logged:
            self._logged.add(place)
            _log.error("%s could not be drawn", self._panel, exc_info=error)

    def drawn(self) -> None:
        """Note that the panel was drawn, so that the next error is logged again."""
        self._logged.clear()


def _place(error: Exception) -> Place:
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if innermost is None:
        return type(error), "", 0
    return type(error), innermost.tb_frame.f_code.co_filename, innermost.tb_lineno
