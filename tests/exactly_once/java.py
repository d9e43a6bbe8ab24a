"""Compiles an application of one source file, and runs it."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import missing
from tests.real_kafka.archive import UNVERIFIED

SOURCES = Path(__file__).parent
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *UNVERIFIED)
JVM = ("-Xmx256m", *QUICK, "-Dlog4j2.level=warn")
COMPILE_TIMEOUT_S = 120.0
END_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Java:
    """A Java, the class path of its applications, and a folder for what they write."""

    java: Path
    class_path: str
    folder: Path

    @classmethod
    def compiled(cls, source: str, java: Path, jars: Sequence[Path], folder: Path) -> "Java":
        """Compile a source file into a folder. Without a compiler the test is skipped, or fails under
        CI."""
        beside = java.resolve().with_name("javac")
        compiler = str(beside) if beside.exists() else shutil.which("javac")
        if compiler is None:
            missing("there is no Java compiler (javac)")
        found = ":".join(f"{each}/*" for each in jars)
        quick = [f"-J{flag}" for flag in QUICK]
        command = [str(compiler), *quick, "-cp", found, "-d", str(folder), str(SOURCES / source)]
        subprocess.run(command, check=True, timeout=COMPILE_TIMEOUT_S)
        return cls(java, f"{folder}:{found}", folder)

    @contextmanager
    def running(self, main: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a class until the block ends. What it prints is shown if the block fails."""
        printed = self.folder / "printed"
        with printed.open("wb") as out:
            process = subprocess.Popen(
                [str(self.java), *JVM, "-cp", self.class_path, main, *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
            try:
                yield process
            except BaseException:
                print(printed.read_text(errors="replace")[-10_000:])
                raise
            finally:
                process.kill()
                process.wait(END_TIMEOUT_S)
                assert process.stdin is not None
                process.stdin.close()
