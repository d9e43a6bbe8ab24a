"""Everything that kview uses of Spark and PySpark beyond their documentation, each with its reason.

`tests/pipeline/test_spark_internals.py` has a test for each item that fails when Spark changes it, and
PySpark is pinned to its minor version. PySpark is imported only when a function here is called, while Java
starts.
"""

import os
import struct
from pathlib import Path
from typing import Any

GATEWAY_SERVER = "org.apache.spark.api.python.PythonGatewayServer"
"""The class that Java is started with. Spark's own launcher is a shell script, and adds a module that the
wheel's Java lacks."""

SUBMIT, SHELL = "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"
"""The class that prepares for masters like YARN and downloads packages, and the name under which it starts
the gateway's server."""

CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The environment variable for the path of the file in which the gateway's server stores its port and
secret."""

_CONNECTION = struct.Struct(">ii")
"""The content of that file: the port, and the length of the secret that follows."""

GATEWAY_PORT, GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""Environment variables that make PySpark use a running gateway instead of starting one."""

RESERVED_MEMORY = "spark.testing.reservedMemory"
"""A setting meant for Spark's tests. With the default value, Spark requires a heap of 450 MB."""


def use_gateway(connection_file: Path) -> None:
    """Set this process's environment so that PySpark connects to the gateway that wrote this file."""
    port, length = _CONNECTION.unpack_from(said := connection_file.read_bytes())
    os.environ[GATEWAY_PORT] = str(port)
    os.environ[GATEWAY_SECRET] = said[_CONNECTION.size : _CONNECTION.size + length].decode()


def executors(context: Any) -> int:
    """Return the number of a context's executors on other machines. Raises Py4JError.

    PySpark's status tracker only knows jobs and stages.
    """
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def forget_gateway() -> None:
    """Make PySpark forget the gateway whose JVM has ended, so that this process can use another one."""
    from pyspark import SparkContext

    os.environ.pop(GATEWAY_PORT, None)
    os.environ.pop(GATEWAY_SECRET, None)
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
