"""A local Spark tries failed tasks again."""

import pytest
from pyspark import SparkContext, TaskContext

from kview.pipeline.session import with_retries


def test_a_task_that_fails_once_is_tried_again(spark: SparkContext) -> None:
    def succeeds_later(number: int) -> int:
        its = TaskContext.get()
        if its is None or its.attemptNumber() == 0:
            raise OSError("the worker was too late")
        return number

    assert spark.parallelize([4, 2], 2).map(succeeds_later).collect() == [4, 2]


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://here:7077", "spark://here:7077"),
    ],
)
def test_only_a_local_master_that_says_nothing_of_it_gets_retries(master: str, expected: str) -> None:
    assert with_retries(master) == expected
