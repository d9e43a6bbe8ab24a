"""The errors a user can meet.

    KviewError                 exit code 1
    ├── BadUse                 2: a flag, file or argument is wrong
    └── ClusterUnreachable     3: no broker of the cluster could be asked

Each says in one sentence what was wrong and what to do about it, and is printed without a traceback. Any
other exception is a bug and keeps its traceback.
"""

from typing import ClassVar


class KviewError(Exception):
    """Something that the user can do something about.

    `message` says what was wrong, and where; `remedy` what to do. Both are written without a full stop.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}"


class BadUse(KviewError):
    """Wrong input: a flag, an argument, a configuration file."""

    exit_code: ClassVar[int] = 2


class ClusterUnreachable(KviewError):
    """No broker of the cluster could be asked before there was any data."""

    exit_code: ClassVar[int] = 3
