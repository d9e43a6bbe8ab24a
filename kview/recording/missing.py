"""Finds the segments that a recording lists but no longer has."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from kview.recording.manifest import SegmentEntry, read_manifest


def missing(folder: Path) -> Iterator[tuple[SegmentEntry, ...]]:
    """Yield the segments whose folders are missing from a recording, in runs without another one in between.

    A segment that the ring drops in the meantime is not missing. Raises KviewError like `read_manifest`.
    """
    gone = {entry.number for entry in read_manifest(folder).segments if not (folder / entry.folder).exists()}
    if not gone:
        return
    listed = read_manifest(folder).segments  # a ring leaves a segment out here before it deletes its folder
    for is_gone, run in groupby(listed, lambda entry: entry.number in gone):
        if is_gone:
            yield tuple(run)
