"""Kafka's own command-line tools, each in a JVM of its own that has Kafka's classes from the archive."""

import subprocess
from pathlib import Path

from tests.real_kafka.archive import CLASS_PATH, HEAP, options

TOOL_TIMEOUT_S = 180.0
"""A JVM starts within 2 s, and within a minute on a machine that others use."""

CONFIGS = "kafka.admin.ConfigCommand"


class Tools:
    """Runs the tools against one cluster. `runtime` is a Java and the folder with Kafka's jars."""

    def __init__(self, runtime: tuple[Path, Path], bootstrap: str) -> None:
        java, jars = runtime
        self.command = [str(java), *HEAP, *options(java, jars), "-Dlog4j2.level=off"]
        self.command += ["-cp", CLASS_PATH.format(jars=jars)]
        self.bootstrap = bootstrap

    def run(self, main: str, *arguments: str, given: str = "", fails: bool = False) -> str:
        """Return what a tool prints. It must succeed, unless it `fails`."""
        command = [*self.command, main, "--bootstrap-server", self.bootstrap, *arguments]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout

    def tool(self, name: str, *arguments: str, given: str = "", fails: bool = False) -> str:
        """Return what a class of Kafka's package of tools prints."""
        return self.run(f"org.apache.kafka.tools.{name}", *arguments, given=given, fails=fails)
