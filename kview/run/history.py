"""Reads from recordings for the screen, on threads that do not delay the end of the run."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kview.errors import KviewError
from kview.model.history import Course, CourseOf, PartitionHistory

if TYPE_CHECKING:
    from kview.pipeline.over_time import Courses

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def read_history(folder: Path | None, topic: str, partition: int) -> PartitionHistory:
    """Return a partition's history, an empty one without a recording in `folder`. Never raises."""
    if folder is None:
        return PartitionHistory()

    def read() -> PartitionHistory:
        from kview.recording.partition_history import partition_history
        from kview.recording.reader import Recording

        return partition_history(Recording.open(folder), topic, partition)

    return await _on_thread(read) or PartitionHistory()


class CourseReader:
    """Reads courses from recordings, the folders of which `folders` returns: see
    `kview.pipeline.over_time.Courses`."""

    def __init__(self, folders: Callable[[], Sequence[Path]]) -> None:
        self._folders = folders
        self._courses: Courses | None = None
        self._creating = threading.Lock()

    async def read(self, asked: CourseOf) -> Course | None:
        """Return a course, None if it could not be read or if another one was asked for. Never raises."""
        return await _on_thread(lambda: self._read(asked))

    def _read(self, asked: CourseOf) -> Course | None:
        from kview.pipeline.over_time import Courses

        with self._creating:
            if self._courses is None:
                self._courses = Courses(self._folders)
        return self._courses.read(asked)


async def _on_thread(read: Callable[[], T | None]) -> T | None:
    """Return what `read` returns on a thread of its own, None if it fails."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T | None] = loop.create_future()

    def arrived(found: T | None) -> None:
        if not future.done():
            future.set_result(found)

    def run() -> None:
        found = None
        try:
            found = read()
        except (KviewError, OSError) as error:
            _log.warning("the recording could not be read: %s", error)
        except Exception:
            _log.exception("the recording could not be read")
        with suppress(RuntimeError):  # the screen has ended
            loop.call_soon_threadsafe(arrived, found)

    threading.Thread(target=run, name="recording", daemon=True).start()
    return await future
