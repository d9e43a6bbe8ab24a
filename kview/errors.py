"""The errors a user can meet, as facts: a kind and the values that belong to it.

    KviewError                 exit code 1
    ├── BadUse                 2: a flag, file or argument is wrong
    └── ClusterUnreachable     3: no broker of the cluster could be asked

`kview.language.errors` turns them into a sentence that says what was wrong and what to do, and the edge
prints that without a traceback. Any other exception is a bug and keeps its traceback.
"""

from enum import StrEnum
from typing import ClassVar, TypeAlias

ErrorValue: TypeAlias = str | int | float | tuple[str | tuple[str, str], ...]
"""What belongs to an error: a name, a number, a list of names, or a list of addresses, each with the value of
the FailureKind that it met."""


class ErrorKind(StrEnum):
    """What went wrong; the names of the values that each kind carries are those in its words."""

    # -- recordings

    # -- the simulated cluster and its world

    # -- Spark

    # -- reaching a cluster
    CONNECTION_REFUSED = "connection refused"
    NO_CONNECTION = "no connection"
    NO_ANSWER = "no answer"
    UNKNOWN_HOST = "unknown host"
    HTTP_SERVER = "http server"
    TLS_LISTENER = "tls listener"
    CLOSES_CONNECTIONS = "closes connections"
    NOT_A_BROKER = "not a broker"
    NO_BOOTSTRAP_SERVER = "no bootstrap server"
    """Each bootstrap server failed in its own way."""
    ADVERTISED_UNREACHABLE = "advertised unreachable"
    """A bootstrap server answers, and no address that the cluster advertises does."""

    # -- flags and arguments
    SERVER_EMPTY = "server empty"
    SERVER_IS_URL = "server is url"
    SERVER_WITHOUT_PORT = "server without port"
    SERVER_WITHOUT_BRACKETS = "server without brackets"
    SERVER_WITHOUT_HOST = "server without host"
    SERVER_PORT_WRONG = "server port wrong"


class KviewError(Exception):
    """Something that the user can do something about: its kind, and values by name."""

    exit_code: ClassVar[int] = 1

    def __init__(self, kind: ErrorKind, **values: ErrorValue) -> None:
        super().__init__(kind, values)
        self.kind = kind
        self.values = values

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"{name}={value!r}" for name, value in self.values.items())])


class BadUse(KviewError):
    """Wrong input: a flag, an argument, a configuration file."""

    exit_code: ClassVar[int] = 2


class ClusterUnreachable(KviewError):
    """No broker of the cluster could be asked before there was any data."""

    exit_code: ClassVar[int] = 3
