"""The flags of a simulated cluster, shared by `kview --simulate` and `kview serve`."""

from collections.abc import Callable
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])


def world_options(command: Command) -> Command:
    """Adds the flags to a command; it receives them as keywords."""
    return command
