"""What a filter may say, and why one is wrong, in words."""

from difflib import get_close_matches

from kview.derive.filters import Field, Filter, Problem

FORMS = "words, !word, /regex/, topic: group: broker: rack: state:"
"""The terms of a filter, for help and for the line in which it is typed."""

_FIELDS = ", ".join(f"{field}:" for field in Field if field)


def problem(wanted: Filter) -> str:
    """Return why a filter is not used, or '' if it is."""
    wrong = wanted.wrong
    match wanted.problem:
        case None:
            return ""
        case Problem.UNKNOWN_FIELD:
            near = get_close_matches(wrong, [field for field in Field if field], 1)
            said = f"did you mean {near[0]}:?" if near else f"write {_FIELDS}"
            return f"not filtered: {wrong}: is not a filter field; {said}"
        case Problem.EMPTY:
            return f"not filtered: something is missing after {wrong}"
        case Problem.NOT_A_BROKER:
            return f"not filtered: {wrong!r} is not a broker's number"
        case Problem.UNKNOWN_STATE:
            return f"not filtered: {wrong!r} is not a state; try state:frozen, state:blocked or state:trouble"
        case Problem.BAD_PATTERN:
            return f"not filtered: the regular expression is wrong ({wrong})"
        case Problem.TOO_MANY:
            return f"not filtered: {wrong} terms is too many"
