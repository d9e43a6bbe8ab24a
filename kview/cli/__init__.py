"""The commands, in one file each, exit codes, and error messages on standard error."""

import signal
import sys

BUG = 70
"""The exit code of a bug in kview: EX_SOFTWARE of sysexits.h, because 0 to 3 have other meanings."""


def main() -> None:
    """Run the command `kview`. Ends with SystemExit.

    Exit codes: 0 success, 1 another error, 2 bad use, 3 no cluster could be reached, 70 a bug, with its
    traceback in the log file. Until a dashboard takes over the key, Ctrl-C ends kview without a message.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kview.cli.group import kview
    from kview.errors import KviewError
    from kview.language.errors import sentence

    try:
        kview.main(prog_name="kview")
    except KviewError as error:
        print(f"kview: {sentence(error)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as bug:
        from kview.run.log import keep_traceback

        print(
            f"kview: bug: {type(bug).__name__}: {bug}; the traceback is {keep_traceback(bug)}",
            file=sys.stderr,
        )
        sys.exit(BUG)
