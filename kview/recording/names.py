"""Names of a recording's files and of their folder, importable without what reads them."""

from pathlib import Path

import platformdirs

MANIFEST = "manifest.json"


def state_folder() -> Path:
    """Return the folder of a user's flight recordings and kept recordings."""
    return Path(platformdirs.user_state_path("kview"))
