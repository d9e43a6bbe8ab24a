"""Remembers in the state folder that the tour was shown."""

import os
from contextlib import suppress
from pathlib import Path

MARK = "tour-seen"


class TourMark:
    """Whether the tour has been shown: an empty file in `folder`. With `skipped`, the tour is not due.

    If the file cannot be written, the tour is due in the next run, too.
    """

    def __init__(self, folder: Path, skipped: bool) -> None:
        self._path = folder / MARK
        self._skipped = skipped

    @property
    def is_due(self) -> bool:
        """Whether the dashboard begins with the tour. A folder that cannot be read counts as a first run."""
        return not self._skipped and not os.path.exists(self._path)

    def done(self) -> None:
        """Write the mark. It is there as a whole or not at all."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
