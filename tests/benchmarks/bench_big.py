"""Measures kview on clusters that other dashboards are reported to block or time out on.

    python -m tests.benchmarks.bench_big [many-partitions] [many-groups] [most-partitions] [most-groups]
        [--real] [--kaskade PATH]

`many-partitions` has 39,000 partitions in 9,000 topics, and 2,200 groups, 194 of which have stopped;
`most-partitions` 100,000 in 1,000 topics, and 60 groups. All have 3 replicas. `many-groups` has 15,000 groups
on one topic of 12 partitions, and `most-groups` 100,000 on one of 3. These are simulated clusters of nine
brokers, or with `--real` those of one topic are real ones of three. The simulated brokers share one process,
so that their own time is longer than that of real ones. Prints each figure of
`kview connect` next to its limit, and then those of Kafka's own tool, and of kaskade if `--kaskade` names its
program. A key is measured until the selected row is another one. Wall times count on a quiet machine only.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kview.derive.fold import step
from kview.derive.state import State
from kview.language import glyphs
from kview.model.address import Address
from kview.observe.observer import Observer, ObserveSettings
from tests.benchmarks import big_clusters
from tests.e2e.processes import cpu_s, resident_bytes, tree
from tests.e2e.pseudo_terminal import PseudoTerminal
from tests.real_kafka.archive import CLASS_PATH, HEAP, options
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import fetch_jars, find_java
from tests.served import Served, kview_environment

BROKERS = 9
TOPICS_A_GROUP = 4
ONE_TOPIC = "orders"
RECORDS = 5
ROUNDS = 8
PRESSES = 100
NO_ANSWER_S = 2.0
INTERVAL_S = 3.0
"""The interval of kview: nine simulated brokers in one process need more than a second for their answers."""
A_LAG = r"\d +≥?[\d,]+ +(?:–|≥?[\d.]+ m?s|≥?\d+ m \d+ s) +[▲●✕…]"
"""What the row of a group looks like once its lag is known: the end of its name, records, time if that is
known, and a verdict, or … until there is one."""
A_TIME = r"\d +≥?[\d,]+ +(?:≥?[\d.]+ m?s|≥?\d+ m \d+ s) +[▲●✕…]"
"""What it looks like once its lag in time is known, too."""

WATCHED_S = 20.0
PATIENCE_S = 300.0


class World(NamedTuple):
    """A filled cluster."""

    bootstrap: str
    topics: int
    partitions: int
    groups: int
    round_s: float
    """The most CPU time of an observation with what is derived of it."""


class ManyTopics(NamedTuple):
    """Topics of so many partitions each, and groups that have a member and read four of them."""

    partitions: list[int]
    groups: int
    stopped: int
    """Groups whose member has left."""
    round_s: float


class OneTopic(NamedTuple):
    """So many groups that commit on all partitions of one topic."""

    groups: int
    partitions: int
    round_s: float


MANY_TOPICS = {
    "many-partitions": ManyTopics([5] * 3_000 + [4] * 6_000, 2_200, 194, 2.0),
    "most-partitions": ManyTopics([100] * 1_000, 60, 5, 1.0),
}
ONE_TOPICS = {"many-groups": OneTopic(15_000, 12, 2.0), "most-groups": OneTopic(100_000, 3, 1.0)}


@contextmanager
def many_topics(size: ManyTopics) -> Iterator[World]:
    """Serve topics with records, and groups that have read them but for the stopped ones."""
    names = [f"topic-{n:04}" for n in range(len(size.partitions))]
    partitions = dict(zip(names, size.partitions, strict=True))
    flags = [word for topic, count in partitions.items() for word in ("--topic", f"{topic}:{count}:3")]
    settings = ("group.initial.rebalance.delay.ms=0",)
    with Served("--brokers", str(BROKERS), "--racks", "3", "--empty", *flags, settings=settings) as cluster:
        first = cluster.addresses[0]
        for leader, parts in big_clusters.leaders(first).items():
            big_clusters.produce(leader, parts, RECORDS)
        groups = {
            f"{'audit' if n < size.stopped else 'reader'}-{n:04}": {
                topic: list(range(partitions[topic]))
                for topic in (names[(n * TOPICS_A_GROUP + k) % len(names)] for k in range(TOPICS_A_GROUP))
            }
            for n in range(size.groups)
        }
        for coordinator, some in big_clusters.coordinators(first, list(groups)).items():
            members = big_clusters.join(coordinator, {group: groups[group] for group in some})
            commits = {
                group: {
                    topic: dict.fromkeys(parts, 1 if group.startswith("audit") else RECORDS)
                    for topic, parts in groups[group].items()
                }
                for group in some
            }
            big_clusters.commit_as(coordinator, members, commits)
            stopped = {group: member for group, member in members.items() if group.startswith("audit")}
            big_clusters.leave(coordinator, stopped)
        yield World(cluster.bootstrap, len(names), sum(size.partitions), size.groups, size.round_s)


def fill_one_topic(size: OneTopic, first: Address, bootstrap: str) -> World:
    """Let groups without members commit on one topic, one record before its end."""
    for leader, parts in big_clusters.leaders(first).items():
        big_clusters.produce(leader, parts, RECORDS)
    groups = [f"job-{n:05}" for n in range(size.groups)]
    offsets = {ONE_TOPIC: dict.fromkeys(range(size.partitions), RECORDS - 1)}
    for coordinator, some in big_clusters.coordinators(first, groups).items():
        big_clusters.commit(coordinator, dict.fromkeys(some, offsets))
    return World(bootstrap, 1, size.partitions, size.groups, size.round_s)


@contextmanager
def one_topic(size: OneTopic, is_real: bool) -> Iterator[World]:
    """Serve one topic that very many groups read."""
    if not is_real:
        topic = f"{ONE_TOPIC}:{size.partitions}:3"
        with Served("--brokers", str(BROKERS), "--empty", "--topic", topic, settings=()) as cluster:
            yield fill_one_topic(size, cluster.addresses[0], cluster.bootstrap)
        return
    java = find_java()
    with (
        tempfile.TemporaryDirectory(prefix="kview-kafka-") as folder,
        RealKafka(Path(folder), java, fetch_jars(java), brokers=3) as cluster,
    ):
        placed = [[(p + r) % 3 for r in range(3)] for p in range(size.partitions)]
        cluster.create_topic(ONE_TOPIC, placed)
        yield fill_one_topic(size, cluster.address(0), cluster.bootstrap_servers)


def line(name: str, value: float, unit: str, most: float | None = None) -> None:
    """Print one figure, next to its limit if it has one."""
    limit = f"   ≤ {most:g} {unit}  {'ok' if value <= most else 'OVER'}" if most is not None else ""
    print(f"  {name:46} {value:9.2f} {unit:6}{limit}", flush=True)


def rounds(world: World) -> None:
    """Measure observations and what is derived of them, without a screen."""
    observer = Observer(
        [Address.parse(server) for server in world.bootstrap.split(",")],
        ObserveSettings(interval_s=INTERVAL_S),
    )
    observer.connect()
    state = State()
    taken: dict[str, list[float]] = {"observe": [], "derive": [], "wall": [], "requests": []}
    for number in range(ROUNDS + 4):
        wall_s = time.monotonic()
        process_s = time.process_time()
        snapshot = observer.observe()
        observed_s = time.process_time() - process_s
        process_s = time.process_time()
        state, view = step(state, snapshot)
        derived_s = time.process_time() - process_s
        took_s = time.monotonic() - wall_s
        if number >= 4:
            taken["observe"].append(observed_s)
            taken["derive"].append(derived_s)
            taken["wall"].append(took_s)
            taken["requests"].append(snapshot.observation.requests)
        time.sleep(max(0.0, INTERVAL_S - took_s))
    observer.close()
    assert len(view.snapshot.groups) == world.groups, len(view.snapshot.groups)
    print(f"  read: {len(view.snapshot.partitions):,} partitions, {len(view.snapshot.groups):,} groups")
    line("an observation, CPU", statistics.median(taken["observe"]), "s")
    line("what is derived of it, CPU", statistics.median(taken["derive"]), "s")
    both_s = map(sum, zip(taken["observe"], taken["derive"], strict=True))
    line("the worst of both, CPU", max(both_s), "s", world.round_s)
    line("an observation with what is derived, wall", statistics.median(taken["wall"]), "s")
    line("requests a second", statistics.mean(taken["requests"]) / INTERVAL_S, "/s", 60)


@contextmanager
def on_a_terminal(command: Sequence[str], state: str) -> Iterator[PseudoTerminal]:
    """Run a program on a terminal of 120×40."""
    environment = {**kview_environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    environment |= {"XDG_STATE_HOME": state, "PYTHONPYCACHEPREFIX": f"{state}/compiled"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    terminal = PseudoTerminal(list(command), 120, 40, environment, settled_s=0)
    try:
        yield terminal
    finally:
        terminal.end()


def kview(world: World) -> list[str]:
    """Return the command of the dashboard."""
    return [
        sys.executable,
        "-m",
        "kview",
        "connect",
        world.bootstrap,
        "--no-spark",
        "--interval",
        f"{INTERVAL_S:g}s",
    ]


def dashboard(world: World, state: str) -> None:
    """Measure the dashboard as a process."""
    with on_a_terminal(kview(world), state) as terminal:
        terminal.wait_for_text(r"answer")
        terminal.press("q")
        terminal.wait_for_end()
    with on_a_terminal(kview(world), state) as terminal:
        terminal.wait_for_text(A_LAG, PATIENCE_S)
        line("first data on the screen, wall", time.monotonic() - terminal.began_s, "s", 3.0)
        line("  CPU until then", cpu_s([terminal.pid]), "s")
        terminal.wait_for_text(A_TIME, PATIENCE_S)
        line("lags in time on the screen, wall", time.monotonic() - terminal.began_s, "s", 10.0)
        settle(terminal, 10.0)
        began_s, began_cpu_s = time.monotonic(), cpu_s([terminal.pid])
        settle(terminal, WATCHED_S)
        used_s = (cpu_s([terminal.pid]) - began_cpu_s) / (time.monotonic() - began_s)
        line("CPU a second, watching screen 1", used_s, "s")
        if asked := re.search(r"([\d.,]+) req/s", terminal.text()):
            line("requests a second, as the head says", float(asked[1].replace(",", "")), "/s", 60)
        for name, before, keys in (
            ("1", "1", "jjkk"), ("3", "3", "jjkk"), ("4", "4", "jjkk"), ("5", "5", "jjkk"),
            ("a group", "5\r", "jjkk"), ("screens", "1", "23451"),
        ):  # fmt: skip
            if name == "3" and world.topics == 1:  # it has no other row
                continue
            press(terminal, before)
            took_ms, cpu_ms = key_times(terminal, keys)
            line(f"keys, {name}: p50", statistics.median(took_ms), "ms")
            line(f"keys, {name}: p99", float(np.percentile(took_ms, 99)), "ms", 80)
            line(f"keys, {name}: mean CPU of the process", cpu_ms, "ms")
            if name == "a group":
                press(terminal, "\x1b")
        line("memory", resident_bytes(tree(terminal.pid)) / 2**20, "MB", 400)


def press(terminal: PseudoTerminal, keys: str) -> None:
    """Press keys, and wait until all is drawn."""
    for key in keys:
        terminal.press(key)
        settle(terminal, 1.0)


def key_times(terminal: PseudoTerminal, keys: str) -> tuple[list[float], float]:
    """Return the ms from each key until another row is selected, NO_ANSWER_S at most, and the mean CPU time
    in between."""
    took, began_cpu_s = [], cpu_s([terminal.pid])
    for number in range(PRESSES):
        settle(terminal, 0.13)
        before = selected(terminal)
        began_s = time.monotonic()
        terminal.press(keys[number % len(keys)])
        while selected(terminal) == before and time.monotonic() - began_s < NO_ANSWER_S:
            terminal.read()
        took.append((time.monotonic() - began_s) * 1000)
    return took, (cpu_s([terminal.pid]) - began_cpu_s) / PRESSES * 1000


def selected(terminal: PseudoTerminal) -> list[tuple[int, str]]:
    """Return the places of the selected rows and their first two columns: the figures behind them change
    without a key, and a topic's partitions have its name in common."""
    rows = (re.search(rf"{glyphs.MARK} *(\S+ +\S+)", row) for row in terminal.text().splitlines())
    return [(place, row[1]) for place, row in enumerate(rows) if row]


def settle(terminal: PseudoTerminal, quiet_s: float) -> None:
    """Read for a while."""
    until_s = time.monotonic() + quiet_s
    while time.monotonic() < until_s:
        terminal.read()
        del terminal.raw[:]


def timed(name: str, work: Callable[[], str]) -> None:
    """Print how long another program takes."""
    began_s = time.monotonic()
    outcome = work()
    line(name, time.monotonic() - began_s, "s")
    print(f"    {outcome}")


def peers(world: World, kaskade: str | None, state: str) -> None:
    """Measure Kafka's own tool, which describes every group once, and another dashboard."""
    java = find_java()
    jars = fetch_jars(java)
    command = [
        str(java),
        *HEAP,
        *options(java, jars),
        "-Dlog4j2.level=off",
        "-cp",
        CLASS_PATH.format(jars=jars),
    ]
    command += ["org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"]
    command += ["--bootstrap-server", world.bootstrap, "--all-groups", "--describe", "--timeout", "300000"]

    def describe() -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired:
            return f"not within {PATIENCE_S:g} s"
        return f"{len(done.stdout.splitlines()):,} lines, exit code {done.returncode}"

    timed("kafka-consumer-groups --all-groups --describe", describe)
    if kaskade:

        def shown() -> str:
            with on_a_terminal([kaskade, "admin", "-b", world.bootstrap], state) as terminal:
                try:
                    topic = r"topic-\d|orders"
                    terminal.wait_for_text(topic, PATIENCE_S)
                except AssertionError as error:
                    return str(error)[:200]
                return f"topics shown; {resident_bytes(tree(terminal.pid)) / 2**20:.0f} MB"

        timed("kaskade admin, first data", shown)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("worlds", nargs="*", metavar="WORLD", default=["many-partitions", "many-groups"])
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--kaskade", metavar="PATH")
    parser.add_argument("--keep", action="store_true", help="print where the cluster is, and wait for Enter")
    parser.add_argument("--only", default="rounds dashboard peers")
    arguments = parser.parse_args()
    for name in arguments.worlds:
        began_s = time.monotonic()
        made = (
            many_topics(MANY_TOPICS[name])
            if name in MANY_TOPICS
            else one_topic(ONE_TOPICS[name], arguments.real)
        )
        with made as world, tempfile.TemporaryDirectory() as state:
            print(f"{name}: {world.partitions:,} partitions, {world.groups:,} groups", flush=True)
            line("made and filled in", time.monotonic() - began_s, "s")
            if arguments.keep:
                print(world.bootstrap, flush=True)
                input()
                continue
            if "rounds" in arguments.only:
                rounds(world)
            if "dashboard" in arguments.only:
                dashboard(world, state)
            if "peers" in arguments.only:
                peers(world, arguments.kaskade, state)


if __name__ == "__main__":
    main()
