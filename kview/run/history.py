"""Reads a partition's history from a recording, on a thread that does not delay the end of the run."""

import asyncio
import logging
import threading
from contextlib import suppress
from pathlib import Path

from kview.errors import KviewError
from kview.model.history import PartitionHistory

_log = logging.getLogger(__name__)


async def read_history(folder: Path | None, topic: str, partition: int) -> PartitionHistory:
    """Return a partition's history, an empty one without a recording in `folder`. Never raises."""
    if folder is None:
        return PartitionHistory()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[PartitionHistory] = loop.create_future()

    def arrived(found: PartitionHistory) -> None:
        if not future.done():
            future.set_result(found)

    def read() -> None:
        found = _read(folder, topic, partition)
        with suppress(RuntimeError):  # the screen has ended
            loop.call_soon_threadsafe(arrived, found)

    threading.Thread(target=read, name="history", daemon=True).start()
    return await future


def _read(folder: Path, topic: str, partition: int) -> PartitionHistory:
    from kview.recording.partition_history import partition_history
    from kview.recording.reader import Recording

    try:
        return partition_history(Recording.open(folder), topic, partition)
    except (KviewError, OSError) as error:
        _log.warning("the history of a partition could not be read: %s", error)
    except Exception:
        _log.exception("the history of a partition could not be read")
    return PartitionHistory()
