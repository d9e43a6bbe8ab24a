"""kafka-python's messages without its clients, in a process that has no use for clients.

`import kafka.protocol` first runs the package `kafka`, which imports every client: 50 ms of the start
of `kview connect`, a quarter of that of `kview serve`, and 10 MB.
"""

import logging
import sys
from importlib.util import find_spec
from types import ModuleType


def without_clients() -> None:
    """Let this process import kafka-python's modules one by one, without those that nobody names."""
    spec = find_spec("kafka")
    if "kafka" in sys.modules or spec is None or spec.submodule_search_locations is None:
        return
    package = ModuleType("kafka")
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    sys.modules["kafka"] = package
    logging.getLogger("kafka").addHandler(logging.NullHandler())  # as the package itself does
