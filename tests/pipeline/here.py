"""What a report needs of Spark, in this process: tasks run one after the other, so that tests may change the
kernel.

`test_kernel.py` shows that Spark's tasks find the same.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

from pyspark import SparkContext


class _Tasks:
    def __init__(self, items: Iterable[Any]) -> None:
        self._items = list(items)

    def map(self, function: Callable[[Any], Any]) -> "_Tasks":
        return _Tasks(map(function, self._items))

    def flatMap(self, function: Callable[[Any], Iterable[Any]]) -> "_Tasks":
        return _Tasks(one for item in self._items for one in function(item))

    def collect(self) -> list[Any]:
        return self._items


class _Here:
    master = "local"
    defaultParallelism = 2

    def parallelize(self, items: Iterable[Any], count: int) -> _Tasks:
        assert count > 0
        return _Tasks(items)


HERE = cast(SparkContext, _Here())
