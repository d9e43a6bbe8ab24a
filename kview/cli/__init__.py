"""The commands, one file each, and the ends of a run: exit codes, and what is said on standard error."""

import signal
import sys

BUG = 70
"""Exit code of a bug in kview: EX_SOFTWARE of sysexits.h, as none of 0 to 3 would be true."""


def main() -> None:
    """Run the command `kview`; ends by SystemExit.

    Exit codes: 0, 2 bad use, 3 no cluster could be reached, 70 a bug (its traceback is in the log file).
    Ctrl-C ends kview silently at any moment, from here until a dashboard takes the key over.
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
            f"kview: bug: {type(bug).__name__}: {bug}; the traceback is in {keep_traceback(bug)}",
            file=sys.stderr,
        )
        sys.exit(BUG)
