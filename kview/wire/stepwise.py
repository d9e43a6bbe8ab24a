"""Makes kafka-python's generated code into generators, with parts of the library that are not documented."""

from typing import Any

from kafka.protocol.schemas.fields.codegen import CodegenContext

ELEMENTS = 32
"""Number of elements in one step. It takes about 50 µs, so that a small request is done in one step."""


class StepwiseCode(CodegenContext):
    """The codec's generator of code, which yields once for every `ELEMENTS` elements of all arrays together.

    `canary` tests in tests/wire show when the library changes how it writes its loops.
    """

    def emit(self, indent: str, line: str) -> None:
        """Add a line. A loop also gets lines that count its steps and yield after every ELEMENTS."""
        super().emit(indent, line)
        loop = line.lstrip()
        if loop.startswith("for ") and loop.endswith(":"):
            inner = f"{indent}{line.removesuffix(loop)}    "
            self.lines += [f"{inner}steps += 1", f"{inner}if not steps % {ELEMENTS}: yield"]

    def begin(self, function: str, *first_lines: str) -> None:
        """Begin the function, whose head is `function`."""
        self.lines += [function, "    steps = 0", *first_lines]

    def compiled(self, title: str, function: str) -> Any:
        """Compile the lines, and return the generator function of this name."""
        self.lines.append("    yield")  # Without any loop it is a generator, too.
        exec(compile(self.source(), f"<{title}>", "exec"), self.globs)
        return self.globs[function]
