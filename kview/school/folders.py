"""Where lessons are."""

from pathlib import Path

import platformdirs


def lesson_folders() -> tuple[Path, ...]:
    """Return the folders of lessons: kview's own, then the user's."""
    own = Path(__file__).parent / "lessons"
    return own, platformdirs.user_config_path("kview", appauthor=False) / "demos"
