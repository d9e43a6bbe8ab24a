"""A canary for each undocumented part of Spark that kview uses. It fails when Spark changes that part."""

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from kview.pipeline import spark_internals as internals
from kview.pipeline.jvm import spark_home


@pytest.fixture
def environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in (internals.GATEWAY_PORT, internals.GATEWAY_SECRET)}
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def test_pyspark_uses_the_gateway_that_kview_has_started(spark: SparkContext) -> None:
    port = launch_gateway().gateway_parameters.port  # type: ignore[no-untyped-call]
    assert port == int(os.environ[internals.GATEWAY_PORT])
    assert spark.parallelize(range(3)).count() == 3


def test_the_connection_file_has_a_port_and_a_secret(tmp_path: Path, environment: None) -> None:
    (tmp_path / "gateway").write_bytes(b"\x00\x00\x30\x39\x00\x00\x00\x03abc")
    internals.use_gateway(tmp_path / "gateway")
    assert os.environ[internals.GATEWAY_PORT] == "12345"
    assert os.environ[internals.GATEWAY_SECRET] == "abc"


def java_class(name: str) -> Any:
    return launch_gateway().jvm.java.lang.Class.forName(name)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", [internals.GATEWAY_SERVER, internals.SUBMIT])
def test_the_class_is_there(spark: SparkContext, name: str) -> None:
    assert java_class(name).getName() == name


def test_a_class_that_is_not_there_is_an_error(spark: SparkContext) -> None:
    with pytest.raises(Py4JError):
        java_class("org.apache.spark.NoSuchClass")


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ("org/apache/spark/internal/config/Tests", internals.RESERVED_MEMORY),
        ("org/apache/spark/api/python/PythonGatewayServer", internals.CONNECTION_FILE),
    ],
)
def test_spark_still_reads_the_setting(entry: str, name: str) -> None:
    (path,) = (spark_home() / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(path) as packed:
        found = [file for file in packed.namelist() if file.startswith(entry)]
        assert found and any(name.encode() in packed.read(file) for file in found)


def test_executors_on_other_machines_can_be_counted(spark: SparkContext) -> None:
    assert internals.executors(spark) == 0


def test_pyspark_holds_its_gateway_where_it_can_be_forgotten(spark: SparkContext) -> None:
    assert SparkContext._gateway is not None and SparkContext._jvm is not None
    assert SparkContext._active_spark_context is spark
