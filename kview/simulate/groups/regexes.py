"""The regular expressions of subscriptions, which are RE2's, as in Kafka.

Kafka has RE2/J, the simulated cluster Arrow's RE2: both take time linear in the text. Their messages differ.
"""

from collections.abc import Mapping

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_results import Refused

EXPRESSIONS_MAX = 1_000
"""Limit of the expressions whose matches are kept. A client may come with another one each time."""

_DESCRIPTIONS: Mapping[str, str] = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""How RE2's messages begin → RE2/J's descriptions. The others are the same."""


def check_regex(pattern: str) -> None:
    """Check a regular expression. Raises Refused."""
    try:
        _match(pattern, ())
    except ValueError as error:
        reason = str(error).partition("Invalid regular expression: ")[2] or str(error)
        found = (text for begin, text in _DESCRIPTIONS.items() if reason.startswith(begin))
        description = next(found, reason.partition(":")[0])
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {description}."
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error


class Matches:
    """The topics that regular expressions match, found once for each expression while the topics are the
    same."""

    def __init__(self) -> None:
        self._topics: Mapping[bytes, str] = {}
        self._found: dict[str, frozenset[str]] = {}

    def of(self, pattern: str, topics: Mapping[bytes, str]) -> frozenset[str]:
        """Return which topics (id → name) an expression matches from end to end: none if it is not valid, as
        in a record that a client has written."""
        if self._topics is not topics or len(self._found) > EXPRESSIONS_MAX:
            self._topics, self._found = topics, {}
        if pattern not in self._found:
            self._found[pattern] = _whole_matches(pattern, tuple(topics.values()))
        return self._found[pattern]


def _whole_matches(pattern: str, names: tuple[str, ...]) -> frozenset[str]:
    """Return which names an expression matches from end to end."""
    for end in ("", r"\E"):  # which ends what \Q begins
        try:
            return _match(rf"\A(?:{pattern}{end})\z", names)
        except ValueError:
            continue
    return frozenset()


def _match(pattern: str, names: tuple[str, ...]) -> frozenset[str]:
    """Return which names an expression matches somewhere. Raises ValueError if it is not valid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Even an expression that nobody asks about is only compiled for an array with something in it.
    array = pa.array((*names, ""), pa.string())
    found = pc.match_substring_regex(array, pattern).to_pylist()
    return frozenset(name for name, matched in zip(names, found, strict=False) if matched)
