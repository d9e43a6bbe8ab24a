"""What is loaded before kview can handle Ctrl-C."""

import subprocess
import sys

LOADED = """
import re, sys  # as the installed script does
before = set(sys.modules)
import kview.cli
print(*sorted(set(sys.modules) - before))
"""


def test_nothing_is_loaded_before_ctrl_c_is_handled() -> None:
    """A Ctrl-C meanwhile would print a traceback."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["atexit", "gc", "kview", "kview.cli", "signal"]
