"""Whether two values made of dataclasses, arrays and tuples are the same, and where they are not."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def unlike(a: Any, b: Any, path: str = "") -> Iterator[str]:
    """The paths at which `a` and `b` differ; NaN equals NaN."""
    if is_dataclass(a) and type(a) is type(b):
        for field in fields(a):
            yield from unlike(getattr(a, field.name), getattr(b, field.name), f"{path}.{field.name}")
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        if not same:
            yield f"{path}: {a!r} is not {b!r}"
    elif isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        for at, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from unlike(left, right, f"{path}[{at}]")
    elif a is not b and a != b and not (a != a and b != b):
        yield f"{path}: {a!r} is not {b!r}"


def frozen(value: Any) -> Any:
    """The same value with every array in it made read-only: whoever writes to one fails."""
    if is_dataclass(value):
        for field in fields(value):
            frozen(getattr(value, field.name))
    elif isinstance(value, np.ndarray):
        value.setflags(write=False)
    return value
