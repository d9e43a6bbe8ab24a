"""kafka-python's modules one by one, in a process that has no use for most of them.

`import kafka.protocol` first runs the package `kafka`, which imports every client: 50 ms of the start of
`kview connect`, a quarter of that of `kview serve`, and 10 MB. The packages of messages make a class of each
message from a file: 25 ms for those that `kview connect` does not send.
"""

import logging
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGES: dict[str, dict[str, str]] = {
    "kafka": {},
    "kafka.net": {},
    "kafka.protocol.admin": {"ListGroupsRequest": "groups"},
    "kafka.protocol.consumer": {"OffsetFetchRequest": "group"},
}
"""The packages whose own code is left out. The names are those that modules in use import from them, and are
found in the submodule given."""


class _Package(ModuleType):
    """A package that has its submodules, and of the names that its own code would import only some."""

    def __getattr__(self, name: str) -> Any:
        submodule = _PACKAGES[self.__name__].get(name)
        if submodule is None:
            raise AttributeError(f"{self.__name__} has no {name} here: import it from its own module")
        return getattr(import_module(f"{self.__name__}.{submodule}"), name)


def one_by_one() -> None:
    """Let this process import kafka-python's modules one by one, without those that nobody names."""
    root = find_spec("kafka")
    if "kafka" in sys.modules or root is None or root.submodule_search_locations is None:
        return
    for name in _PACKAGES:
        _, *folders = name.split(".")
        package = sys.modules[name] = _Package(name)
        package.__path__ = [str(Path(place, *folders)) for place in root.submodule_search_locations]
        package.__spec__ = ModuleSpec(name, None, is_package=True)
        package.__spec__.submodule_search_locations = package.__path__
    logging.getLogger("kafka").addHandler(logging.NullHandler())  # as the package itself does
