"""The page of a report in a real browser: headless Chromium, on a desk and on a phone, light and dark."""

import shutil
import subprocess
from datetime import UTC
from pathlib import Path

import pytest

from kview.plain.report.page import page
from tests.plain.report.sample import compared
from tests.plain.report.test_files import assert_figures_of_json

CHROMIUM = shutil.which("chromium") or ""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="there is no chromium: install the package chromium"),
]

DARK, LIGHT = 0, 1
"""Blink's numbers of the colour schemes that a user can prefer."""


def browse(folder: Path, *flags: str) -> bytes:
    """Open the page in `folder`, and return what Chromium prints."""
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *(f"--user-data-dir={folder / 'profile'}", *flags, (folder / "page.html").as_uri()),
    ]
    return subprocess.run(command, capture_output=True, check=True, timeout=600).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "page.html").write_text(page(compared(), UTC))
    return tmp_path


def test_a_browser_shows_the_figures_of_the_json(folder: Path) -> None:
    assert_figures_of_json(browse(folder, "--dump-dom").decode(), compared())


@pytest.mark.parametrize("width", [1300, 500])
def test_the_page_follows_the_preferred_colours(folder: Path, width: int) -> None:
    brightness = []
    for scheme in (DARK, LIGHT):
        picture = folder / f"{scheme}.png"
        settings = f"--blink-settings=preferredColorScheme={scheme}"
        browse(folder, settings, f"--window-size={width},900", f"--screenshot={picture}")
        from matplotlib.image import imread  # a third of a second for each process that collects tests

        pixels = imread(picture)
        assert pixels.shape[:2] == (900, width)
        brightness.append(float(pixels[..., :3].mean()))
    assert brightness[DARK] < 0.3 and brightness[LIGHT] > 0.8
