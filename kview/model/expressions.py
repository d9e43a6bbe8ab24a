"""Regular expressions over many texts, with RE2: its time is linear in the text, whatever the expression."""

from collections.abc import Sequence

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


def matching(pattern: str, texts: Sequence[str], *, ignore_case: bool = False) -> Flags:
    """Return which texts an expression matches somewhere. Raises ValueError if RE2 does not take it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.array([text.encode("utf-8", "replace") for text in texts], pa.large_binary())
    matches = pc.match_substring_regex(array.cast(pa.large_string()), pattern, ignore_case=ignore_case)
    flags: Flags = matches.to_numpy(zero_copy_only=False).astype(bool)
    return flags
