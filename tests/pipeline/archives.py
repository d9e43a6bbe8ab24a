"""The making of Java's class-data archive."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kview.recording.writer import RecordingWriter
from tests.waiting import wait_until
from tests.worlds import default_world

MADE_WITHIN_S = 240

OTHERS = {"spark-0123456789abcdef.archive": "of another Java", "jars": "of others"}
"""What is in a user's cache folder already."""


@contextmanager
def making(java: Path, recording: Path, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`python -m kview.pipeline.archive`, its files and caches in that folder. Until its standard input ends
    or it does."""
    scratch = folder / "scratch"
    scratch.mkdir()
    flags = ("--java", java, "--recording", recording, "--scratch", scratch)
    command = [sys.executable, "-m", "kview.pipeline.archive", *map(str, flags)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=2, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def make_archive(java: Path, folder: Path) -> None:
    """Makes one in that cache folder, in which there is something already."""
    (folder / "kview").mkdir()
    for name, content in OTHERS.items():
        (folder / "kview" / name).write_text(content)
    world, writer = default_world(), RecordingWriter(folder / "recording")

    def has_ended() -> bool:
        # As while a dashboard records: what Java learns is how to go on, too.
        writer.append(world.tick())
        return process.poll() is not None

    writer.append(world.tick())
    with making(java, writer.folder, folder) as process:
        wait_until(has_ended, "an archive", MADE_WITHIN_S)
    assert process.returncode == 0
