"""The words for one kind of error."""

from typing import NamedTuple


class ErrorWords(NamedTuple):
    """The words for an error. `{name}` is replaced by the error's value of that name. No full stops."""

    message: str
    remedy: str
    several: str = ""
    """The message if `where` has several addresses, if the verb must agree with it."""


SEE_LOG = "see the log file {log}"
"""`{log}` is replaced by the path of the log file."""

RESTARTED = "kview restarts it automatically"
