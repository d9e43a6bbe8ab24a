"""Measures the time from the start of the process to the first frame and the first data, on a terminal of
120×40, and from `q` to the end of it and its children (kview's limit: 1 s).

    python -m tests.benchmarks.bench_start [--runs 7] [--kaskade PATH]

Prints a table of medians and worst cases, and of the processor time until the first data, the one to believe
on a machine that is busy with other things. `--kaskade` is the program of another dashboard, kaskade 5.1, in
an environment of its own (`python3 -m venv k && k/bin/pip install kaskade==5.1.0`). It shows the same
simulated cluster.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.processes import cpu_s, runs, tree
from tests.e2e.pseudo_terminal import PseudoTerminal
from tests.waiting import wait_until

GIVE_UP_S = 30.0

DATA = re.compile(r"invoice\b.*\d")
"""A topic's name, followed by a figure."""


@contextmanager
def simulated_cluster() -> Iterator[str]:
    """Run `kview serve`, and yield its bootstrap servers."""
    command = [sys.executable, "-m", "kview", "serve"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().removeprefix("bootstrap.servers=")
        finally:
            process.terminate()


def measure(command: list[str], compiled: str, end_key: str = "q") -> tuple[float, float, float, float]:
    """Return the seconds from the process's start to its first output on the screen, and to the first data,
    the seconds of processor time that it and its children took until then, and the seconds that its end took.

    `compiled` is a folder for compiled modules, because an installed program has them, but a checkout may
    not.
    """
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "PYTHONPYCACHEPREFIX": compiled,
        "XDG_STATE_HOME": compiled,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    terminal = PseudoTerminal(command, 120, 40, environment, settled_s=0)
    try:
        terminal.wait_for(lambda: terminal.text().strip(), "a first frame", GIVE_UP_S)
        frame_s = time.monotonic() - terminal.began_s
        terminal.wait_for(lambda: DATA.search(terminal.text()), "first data", GIVE_UP_S)
        data_s = time.monotonic() - terminal.began_s
        processes = tree(terminal.pid)
        processor_s = cpu_s(processes)
        pressed_s = time.monotonic()
        terminal.press(end_key)
        terminal.wait_for_end(GIVE_UP_S)
        wait_until(lambda: not any(map(runs, processes)), "the end of its children", GIVE_UP_S)
        return frame_s, data_s, processor_s, time.monotonic() - pressed_s
    finally:
        terminal.end()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--kaskade", metavar="PATH")
    arguments = parser.parse_args()
    with simulated_cluster() as bootstrap, tempfile.TemporaryDirectory() as compiled:
        kview = [sys.executable, "-m", "kview"]
        commands = {
            "kview connect": [*kview, "connect", bootstrap],
            "kview --simulate": [*kview, "--simulate"],
        }
        if arguments.kaskade:
            commands["kaskade admin"] = [arguments.kaskade, "admin", "-b", bootstrap]
        end_keys = dict.fromkeys(commands, "q") | {"kaskade admin": "\x03"}
        for name, command in commands.items():
            measure(command, compiled, end_keys[name])
        # The programs run in turns, so that a busy moment of the machine affects all of them.
        taken: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in commands}
        for _ in range(arguments.runs):
            for name, command in commands.items():
                taken[name].append(measure(command, compiled, end_keys[name]))
    heads = "".join(f"{head:>21}" for head in ("first frame, s", "first data, s", "processor, s", "end, s"))
    print(f"{'':18}{heads}   median (worst of {arguments.runs})")
    for name, measured in taken.items():
        columns = zip(*measured, strict=True)
        cells = [f"{statistics.median(column):.2f} ({max(column):.2f})" for column in columns]
        print(f"{name:18}" + "".join(f"{cell:>21}" for cell in cells))


if __name__ == "__main__":
    main()
