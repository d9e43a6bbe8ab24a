"""Other processes as `ps` sees them, and Linux's /proc."""

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tests.waiting import wait_until

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _listed() -> list[tuple[int, int, str]]:
    """Every process: its id, its parent's and its command line."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [(int(pid), int(parent), words[0] if words else "") for pid, parent, *words in rows]


def children(pid: int) -> list[int]:
    """The process ids of the children of `pid`."""
    return [child for child, parent, _ in _listed() if parent == pid]


def runs(pid: int) -> bool:
    """Whether that process is alive; one that has ended and waits for its parent is not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")


def descendants(pid: int) -> list[tuple[int, str]]:
    """The process ids and command lines of the children of `pid`, of theirs, and so on."""
    rows = _listed()
    found, above = [], {pid}
    while above:
        below = [(child, words) for child, parent, words in rows if parent in above]
        found += below
        above = {child for child, _ in below}
    return found


def jvms(pid: int) -> list[int]:
    """Those of Spark's Java below that process. A Java that starts a program is two for a moment."""
    return [child for child, words in descendants(pid) if "PythonGatewayServer" in words]


def only_jvm(pid: int) -> int:
    """The process of Spark's Java below that process, once there is one and no second one."""
    found: list[int] = []

    def is_one() -> bool:
        found[:] = jvms(pid)
        return len(found) == 1

    wait_until(is_one, "one Java")
    return found[0]


def named(words: str) -> list[int]:
    """The processes with these words in their command lines."""
    return [pid for pid, _, line in _listed() if words in line]


def exists(pid: int) -> bool:
    """Whether there is that process; also one that has ended and waits for its parent."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def tree(pid: int) -> list[int]:
    """That process and all below it."""
    return [pid, *(child for child, _ in descendants(pid))]


def resident_bytes(pids: Iterable[int]) -> int:
    """What these processes have in memory, a page that several share counted once (Linux alone)."""
    total = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # It has ended meanwhile.
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def cpu_s(pids: Iterable[int]) -> float:
    """The processor time that these processes have had, with that of children that have ended (Linux
    alone)."""
    ticks = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, words[11:15]))
    return ticks / TICKS_PER_S
