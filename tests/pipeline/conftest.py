"""A Spark session for the entire test run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kview.pipeline.batch_session import BatchSession
from tests.spark_java import spark_java

__all__ = ("spark", "spark_java")


@pytest.fixture(scope="session")
def spark(spark_java: None) -> Iterator[SparkSession]:
    """A session as a short report has it."""
    with BatchSession("local[2]", is_long=False) as session:
        yield session.spark
