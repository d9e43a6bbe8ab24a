"""Every reach into parts of Spark and PySpark that their documentation does not promise, with its reason.

`tests/pipeline/test_spark_internals.py` has a test for each that fails when Spark moves it; PySpark is pinned
to its minor version for them. Nothing here imports PySpark before it is called: Java starts meanwhile.
"""

import os
import struct
from pathlib import Path
from typing import Any

GATEWAY_SERVER = "org.apache.spark.api.python.PythonGatewayServer"
"""The class that Java is started with. Spark's own launcher adds a module that the wheel's Java lacks, and is
a shell script."""

CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The environment variable that tells the gateway's server where to write how to connect to it."""

_CONNECTION = struct.Struct(">ii")
"""In that file: the port, and the length of the secret that follows."""

GATEWAY_PORT, GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""Environment variables by which PySpark uses a gateway that runs already instead of starting one."""

RESERVED_MEMORY = "spark.testing.reservedMemory"
"""A setting meant for Spark's tests: with its default, Spark asks for a heap of 450 MB."""

CHECKPOINT_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""The default manager starts `chmod` and `readlink` for every file."""

FUNCTIONS = "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$"
"""Loading this class loads all of Spark's SQL functions, which otherwise delays the first query."""

PARSER = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"
"""Parses a query without a session, for the same reason."""


def use_gateway(connection_file: Path) -> None:
    """Set this process's environment so that PySpark connects to the gateway that wrote this file."""
    port, length = _CONNECTION.unpack_from(said := connection_file.read_bytes())
    os.environ[GATEWAY_PORT] = str(port)
    os.environ[GATEWAY_SECRET] = said[_CONNECTION.size : _CONNECTION.size + length].decode()


def java_class(name: str) -> Any:
    """A class of the JVM, loaded now. Raises Py4JError if there is none of that name."""
    from pyspark.java_gateway import launch_gateway

    return launch_gateway().jvm.java.lang.Class.forName(name)  # type: ignore[no-untyped-call]


def load_functions() -> None:
    """Load Spark's SQL functions. Raises Py4JError."""
    java_class(FUNCTIONS)


def parser() -> Any:
    """Spark's parser of queries, whose method `parsePlan` needs no session. Raises Py4JError."""
    return java_class(PARSER).getField("MODULE$").get(None)
