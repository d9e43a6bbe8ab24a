"""The names of a recording's files and folder, in a module that can be imported without the reader."""

from pathlib import Path

import platformdirs

MANIFEST = "manifest.json"


def state_folder() -> Path:
    """Return the folder of the user's flight recordings and of recordings kept under a name."""
    return Path(platformdirs.user_state_path("kview"))


def flight_folder(state: Path) -> Path:
    """Return the folder that holds the flight recordings, one subfolder per run."""
    return state / "flight"


def kept_folder(state: Path) -> Path:
    """Return the folder that holds the kept recordings, one subfolder per name."""
    return state / "recordings"


def saved_folder(state: Path) -> Path:
    """Return the folder of screenshots and exported tables."""
    return state / "saved"


def kept_names(state: Path) -> tuple[str, ...]:
    """Return the names of the recordings kept, sorted. Raises OSError."""
    return tuple(sorted(entry.name for entry in kept_folder(state).glob("*") if (entry / MANIFEST).is_file()))
