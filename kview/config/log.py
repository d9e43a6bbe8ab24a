"""Where the log file is."""

from pathlib import Path

import platformdirs


def log_path() -> Path:
    """Return the path of the log file, in the user's state folder."""
    return Path(platformdirs.user_log_path("kview", appauthor=False)) / "kview.log"
