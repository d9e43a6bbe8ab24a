"""The log file, above all when it cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import ROOT


def test_what_does_not_fit_on_the_disk_is_dropped_quietly(tmp_path: Path) -> None:
    program = """if True:
        import logging
        from kview.run.log import log_file, log_path, start_log
        log_path().parent.mkdir(parents=True)
        log_path().symlink_to("/dev/full")
        start_log()
        logging.getLogger("kview").warning("nobody reads this")
        print(log_file())
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path)) and done.stderr == ""
