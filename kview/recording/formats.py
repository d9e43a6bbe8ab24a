"""What differs between the schema versions of recordings, for the reader."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from kview.recording import version1
from kview.recording.manifest import Manifest
from kview.recording.moments import Layout
from kview.recording.schema import PARTS, STREAM


class Format(NamedTuple):
    """How the segments of a recording are read."""

    parts: Mapping[str, pa.Schema]
    """What a segment consists of."""
    stream: pa.Schema
    """What an open segment's file holds."""
    layout: Layout
    rows: Callable[[pa.Table], Iterable[dict[str, Any]]]
    """A table of observations as rows of today's."""


def format_of(manifest: Manifest) -> Format:
    """The format of the recording with this manifest."""
    if manifest.version == version1.VERSION:
        layout = version1.layout(manifest.columns)
        return Format(version1.PARTS_1, version1.STREAM_1, layout, version1.rows)
    return Format(PARTS, STREAM, Layout(manifest.columns), pa.Table.to_pylist)
