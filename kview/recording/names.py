"""The names of a recording's files and folder, in a module that can be imported without the reader."""

from pathlib import Path

import platformdirs

MANIFEST = "manifest.json"


def state_folder() -> Path:
    """Return the folder of a user's flight recordings and kept recordings."""
    return Path(platformdirs.user_state_path("kview"))
