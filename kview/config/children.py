"""The environment of the child processes that kview starts: `kview serve` and the Spark job."""

import os
from pathlib import Path

import kview


def child_environment() -> dict[str, str]:
    """Return this process's environment, extended so that a child imports the same kview, from any working
    folder.
    """
    ours = str(Path(kview.__file__).resolve().parent.parent)
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ours}{os.pathsep}{others}" if others else ours}
