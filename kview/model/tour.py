"""Whether the first-run tour is due."""

from typing import Protocol


class Tour(Protocol):
    """Knows whether the tour has been shown. All methods are called on the screen's thread."""

    @property
    def is_due(self) -> bool:
        """Whether the dashboard begins with the tour."""
        ...

    def done(self) -> None:
        """Take note that the tour has ended or was skipped. Never raises."""
        ...
