"""A Spark context for the entire test run."""

from contextlib import ExitStack

import pytest
from pyspark import SparkContext

from kview.pipeline.batch_session import BatchSession


@pytest.fixture(autouse=True, scope="session")
def quick_java(spark_java: None) -> None:
    """Every test of the pipeline may start Spark."""


@pytest.fixture(scope="session")
def spark(spark_java: None, ends: ExitStack) -> SparkContext:
    """A context as a report has it."""
    return ends.enter_context(BatchSession("local[2]")).context
