"""What Python on a worker needs. The standard library is enough to find out."""

from importlib.util import find_spec

MODULES = ("numpy", "pyarrow")


def lacks(number: int) -> list[str]:
    """Return the modules that this Python lacks. `number` is that of the task that asks."""
    return [name for name in MODULES if find_spec(name) is None]
