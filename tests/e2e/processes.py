"""Other processes as `ps` sees them."""

import subprocess


def children(pid: int) -> list[int]:
    """The process ids of the children of `pid`."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [child for child, parent in pairs if parent == pid]


def runs(pid: int) -> bool:
    """Whether that process is alive; one that has ended and waits for its parent is not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")


def descendants(pid: int) -> list[tuple[int, str]]:
    """The process ids and command lines of the children of `pid`, of theirs, and so on."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found, above = [], {pid}
    while above:
        below = [
            (int(child), words[0] if words else "") for child, parent, *words in rows if int(parent) in above
        ]
        found += below
        above = {child for child, _ in below}
    return found
