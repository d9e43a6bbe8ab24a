"""A Spark session for the entire test run."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kview.pipeline.batch_session import SETTINGS
from kview.pipeline.jvm import Gateway, choose_java
from kview.pipeline.session import new_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    gateway = Gateway(choose_java(os.environ), scratch)
    gateway.connect()
    session = new_session(scratch, threads=2)
    # As in a session for reports.
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    for name, value in SETTINGS.items():
        if name.startswith("spark.hadoop."):
            hadoop.set(name.removeprefix("spark.hadoop."), value)
    yield session
    session.stop()
    gateway.end(within_s=10)
