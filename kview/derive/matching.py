"""Regular expressions over many names, with RE2: its time is linear in the text, whatever the expression."""

from collections.abc import Sequence

import numpy as np

from kview.model.snapshot import Flags

MOST_CHARACTERS = 200
"""The longest expression. Nobody types a longer one."""


def bad_pattern(pattern: str) -> str:
    """Return why RE2 does not take an expression, such as `missing ): a(`, or '' if it does."""
    if len(pattern) > MOST_CHARACTERS:
        return f"longer than {MOST_CHARACTERS} characters"
    try:
        matching(pattern, [""])
    except ValueError as error:
        return str(error).removeprefix("Invalid regular expression: ").strip()
    return ""


def matching(pattern: str, names: Sequence[str]) -> Flags:
    """Return which names an expression matches somewhere, in upper or lower case.

    Raises ValueError if RE2 does not take the expression.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.array([name.encode("utf-8", "replace").decode() for name in names], pa.string())
    found: Flags = np.asarray(
        pc.match_substring_regex(array, pattern, ignore_case=True).to_numpy(False), bool
    )
    return found
