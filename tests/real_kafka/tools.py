"""Kafka's own command-line tools, all in one JVM of this process: a JVM of its own costs a tool more than a
second of processor time, and in one that runs it takes a tenth of that.

A tool is a class whose `main` prints on `System.out` and ends through Kafka's `Exit`, which has a hook.
"""

import atexit
import os
import subprocess
from functools import cache, reduce
from pathlib import Path
from typing import Any

from py4j.java_gateway import (  # type: ignore[import-untyped]
    CallbackServerParameters,
    GatewayParameters,
    JavaGateway,
    find_jar_path,
)
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from tests.real_kafka.archive import CLASS_PATH, HEAP, options

END_TIMEOUT_S = 60.0
CONFIGS = "kafka.admin.ConfigCommand"


class ToolExit(Exception):
    """Ends a tool."""


class Exits:
    """Kafka's `Exit.Procedure`. The first exit of a tool counts: some catch what ends them, print it, and
    exit again."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self.first: tuple[int, str] | None = None
        """The status and what was printed before."""

    def execute(self, status: int, message: str | None) -> None:
        if self.first is None:
            self.first = status, str(self._out.toString())
        raise ToolExit(message)

    class Java:
        implements = ("org.apache.kafka.common.utils.Exit$Procedure",)


class Tools:
    """Runs the tools against one cluster. `runtime` is a Java and the folder with Kafka's jars."""

    def __init__(self, runtime: tuple[Path, Path], bootstrap: str) -> None:
        self._java = tool_java(*runtime)
        self.bootstrap = bootstrap

    def run(self, main: str, *arguments: str, given: str = "", fails: bool = False) -> str:
        """Return what a tool prints. It must succeed, unless it `fails`."""
        status, printed, errors = self._java.run(
            main, "--bootstrap-server", self.bootstrap, *arguments, given=given
        )
        assert (status != 0) is fails, printed + errors
        return printed

    def tool(self, name: str, *arguments: str, given: str = "", fails: bool = False) -> str:
        """Return what a class of Kafka's package of tools prints."""
        return self.run(f"org.apache.kafka.tools.{name}", *arguments, given=given, fails=fails)


class ToolJava:
    """A JVM with Kafka's classes, which runs one tool after another and ends with this process."""

    def __init__(self, java: Path, jars: Path) -> None:
        class_path = f"{CLASS_PATH.format(jars=jars)}{os.pathsep}{find_jar_path()}"
        command = [str(java), *HEAP, *options(java, jars), "-Dlog4j2.level=off", "-cp", class_path]
        self._process = subprocess.Popen(
            [*command, "py4j.GatewayServer", "--die-on-broken-pipe", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        port = int(self._process.stdout.readline())
        atexit.register(self._end)
        gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port),
            callback_server_parameters=CallbackServerParameters(
                port=0, daemonize=True, daemonize_connections=True
            ),
        )
        callbacks = gateway.get_callback_server()
        server = gateway.java_gateway_server
        server.resetCallbackClient(server.getCallbackClient().getAddress(), callbacks.get_listening_port())
        self._gateway, self._jvm = gateway, gateway.jvm
        self._out, self._errors = (self._jvm.java.io.ByteArrayOutputStream() for _ in range(2))
        self._jvm.System.setOut(self._jvm.java.io.PrintStream(self._out, True))
        self._jvm.System.setErr(self._jvm.java.io.PrintStream(self._errors, True))
        self._exits = Exits(self._out)
        exit_class = self._jvm.org.apache.kafka.common.utils.Exit
        exit_class.setExitProcedure(self._exits)
        exit_class.setHaltProcedure(self._exits)

    def _end(self) -> None:
        """End the JVM, which ends with its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(END_TIMEOUT_S)

    def run(self, main: str, *arguments: str, given: str = "") -> tuple[int, str, str]:
        """Return a tool's status, what it printed, and its errors."""
        self._exits.first = None
        self._out.reset()
        self._errors.reset()
        self._jvm.System.setIn(self._jvm.java.io.ByteArrayInputStream(given.encode()))
        words = self._gateway.new_array(self._jvm.String, len(arguments))
        for place, word in enumerate(arguments):
            words[place] = word
        tool = reduce(getattr, main.split("."), self._jvm)
        try:
            tool.main(words)
            ended = (0, str(self._out.toString()))
        except Py4JJavaError as error:
            ended = (1, f"{self._out.toString()}{error}")
        status, printed = self._exits.first or ended
        return status, printed, str(self._errors.toString())


@cache
def tool_java(java: Path, jars: Path) -> ToolJava:
    """The JVM of this process for the tools."""
    return ToolJava(java, jars)
