"""Standard output whose failures are errors that a user can do something about, such as a full disk."""

import io
import os
from typing import TYPE_CHECKING, TextIO

from kview.errors import ErrorKind, KviewError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    """A descriptor that raises KviewError if it cannot be written."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write `data`, and return how many bytes were written.

        Raises BrokenPipeError if nobody reads the output, and KviewError if it fails in any other way. After
        that the output goes nowhere: what is still buffered would fail again when the interpreter ends.
        """
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())
            raise KviewError(ErrorKind.OUTPUT_FAILED, reason=error.strerror or str(error)) from error


def checked(output: TextIO) -> TextIO:
    """Return a stream that writes to the same descriptor as `output`, with KviewError for what fails."""
    raw = _Output(output.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=output.encoding,
        errors=output.errors,
        line_buffering=output.isatty(),
    )
