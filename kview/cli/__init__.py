"""The commands, in one file each, exit codes, and error messages on standard error.

What is imported here is imported before `main` can handle Ctrl-C, so it is only what Python has loaded
anyway.
"""

import atexit
import gc
import io
import os
import signal
import sys

BUG = 70
"""The exit code of a bug in kview: EX_SOFTWARE of sysexits.h, because 0 to 4 have other meanings."""


OBJECTS_AT_FIRST = 300_000
"""How many objects may exist before the garbage collector looks for cycles for the first time: those of all
imports and of the first screen, among which it would find nothing. With Python's 700, it takes a sixth of the
time of all imports, and with 10,000 a twentieth."""

OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""How many more objects may exist before it looks again."""


ONE_THREAD = "OPENBLAS_NUM_THREADS", "1"
"""numpy's threads for matrices, which kview has none of, would take a quarter of the processor time of its
start."""


def main() -> None:
    """Run the command `kview`. Ends with SystemExit.

    Exit codes: 0 success, 1 another error, 2 bad use, 3 no cluster could be reached, 4 a forecast that is
    wrong, 70 a bug, with its traceback in the log file, 128 + N ended by signal N. Until a dashboard takes
    over the key, Ctrl-C ends kview without a message.
    """
    ending = _Ending()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(OBJECTS_AT_FIRST)
    gc.callbacks.append(_collect_as_later)
    os.environ.setdefault(*ONE_THREAD)
    _open_streams()
    try:
        run()
    except KeyboardInterrupt:
        ending.code = 128 + signal.SIGINT
    except SystemExit as end:
        ending.code = end.code or 0
    except Exception as bug:
        from kview.language.glyphs import printable
        from kview.run.log import keep_traceback

        said = f"kview: bug: {type(bug).__name__}: {bug}; the traceback is {keep_traceback(bug)}"
        print(printable(said), file=sys.stderr)
        ending.code = BUG
    sys.exit(ending.code)


class _Ending:
    """Ends the process after all that is done at its exit, without the end of the interpreter, which takes
    0.1 s and aborts when a thread is in Arrow."""

    def __init__(self) -> None:
        self.code: int | str = BUG
        atexit.register(self._end)  # what is registered first is done last

    def _end(self) -> None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except Exception:
            return  # and leave the rest to the interpreter
        if isinstance(self.code, int):
            os._exit(self.code)


def run() -> None:
    """Run the command line in `sys.argv`, and say an error in its sentence. Ends with SystemExit."""
    from kview.cli.group import kview
    from kview.errors import KviewError
    from kview.language.errors import sentence
    from kview.wire.kafka_package import one_by_one

    one_by_one()
    output = sys.stdout
    try:
        kview.main(prog_name="kview")
    except KviewError as error:
        print(f"kview: {sentence(error)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # If nobody reads the output any more, Click replaces it and exits with 1. It is not an error.
        sys.exit(end.code if sys.stdout is output else 0)


def _collect_as_later(phase: str, info: dict[str, int]) -> None:
    """Take note of the first collection: from now on, there are more."""
    gc.callbacks.remove(_collect_as_later)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def _open_streams() -> None:
    """Open the standard streams that are closed on /dev/null, and let all of them write any character.

    Otherwise the next file or socket would become a standard stream, and errors would be printed into it.
    """
    from kview.cli.output import checked

    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stdout = checked(sys.stdout)
