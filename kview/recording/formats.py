"""How recordings of each schema version are read."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from kview.recording import version1, version2
from kview.recording.columns import NAMES
from kview.recording.fact_schema import FACTS
from kview.recording.manifest import Manifest
from kview.recording.moments import Layout
from kview.recording.schema import PARTS, STREAM, STREAMED


class Format(NamedTuple):
    """The way to read the segments of a recording."""

    parts: Mapping[str, pa.Schema]
    """The parts of a segment."""
    stream: pa.Schema
    """The schema of an open segment's file."""
    layout: Layout
    rows: Callable[[pa.Table], Iterable[dict[str, Any]]]
    """A function that converts a table of observations to rows with the columns of OBSERVATIONS."""
    facts: frozenset[str] = frozenset()
    """The names of the parts that hold facts."""


FACTS_SINCE = 4
"""The first version with facts."""


def format_of(manifest: Manifest) -> Format:
    """Return the format of the recording with this manifest. Raises ValueError if its columns are wrong."""
    names = {version1.VERSION: version1.NAMES_1, version2.VERSION: version2.NAMES_2}
    if sorted(manifest.columns) != sorted(names.get(manifest.version, NAMES)):
        raise ValueError(f"its columns are not those of format {manifest.version}")
    if manifest.version == version1.VERSION:
        layout = version1.layout(manifest.columns)
        return Format(version1.PARTS_1, version1.STREAM_1, layout, version1.rows)
    of_version_2 = manifest.version == version2.VERSION
    layout = version2.layout(manifest.columns) if of_version_2 else Layout(manifest.columns)
    if manifest.version < FACTS_SINCE:
        return Format(STREAMED, STREAM, layout, pa.Table.to_pylist)
    return Format(PARTS, STREAM, layout, pa.Table.to_pylist, frozenset(FACTS))
