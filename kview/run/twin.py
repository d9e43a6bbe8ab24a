"""`kview twin`: a simulated cluster that is like an observed one, to break instead of it."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kview.config.scratch import TWINS, Scratch
from kview.derive.view import View
from kview.errors import BadUse, KviewError
from kview.lab.twin import Twin, Unlike, encoded
from kview.lab.twin_loss import Outage
from kview.language.words import plural
from kview.model.notices import Notice
from kview.model.units import UNKNOWN_ID
from kview.recording.reader import Recording
from kview.run import replaying
from kview.run.checking import end_if_lost
from kview.run.checking import write as write_file
from kview.run.log import start_log
from kview.run.observing import Source, new_fold, views
from kview.run.recorder import check_target
from kview.run.settings import Display
from kview.run.show import Shown, show
from kview.run.simulated import SimulatedSource
from kview.simulate.world import OFFSETS_TOPIC

SETTINGS_WITHIN_S = 15.0
"""How much longer is observed if the settings of topics are not known yet."""

MOST_NAMES = 10
"""The most partitions that are named."""


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def observed(source: Source, for_s: float, wait: Callable[[float], bool] | None = None) -> View:
    """Observe a source, and return its last view. Raises KviewError."""
    start_log()
    began_s = time.monotonic()
    try:
        for item in views(source, new_fold, 1.0, wait or _sleep):
            if isinstance(item, Notice):
                end_if_lost(item)
                continue
            passed_s = time.monotonic() - began_s
            known = bool((item.snapshot.partitions.min_isr != UNKNOWN_ID).all())
            if passed_s >= for_s + (0.0 if known else SETTINGS_WITHIN_S):
                return item
    finally:
        source.close()
    raise AssertionError("observing ends only by itself")


def recorded(recording: Recording, at_ms: int | None) -> View:
    """Return the view of a recording at a moment, None for its end."""
    return next(replaying.views(recording, at_ms, once=True))


def write(twin: Twin, file: Path) -> None:
    """Write a twin's world for `kview serve --world`. Raises BadUse."""
    try:
        write_file(file, encoded(twin.world))
    except KviewError as error:
        raise BadUse.of(error) from error


def play(twin: Twin, name: str, display: Display) -> int:
    """Show a twin of the cluster called `name`, and return the exit code. Raises KviewError."""
    check_target(display.record)
    scratch = Scratch(TWINS)
    try:
        file = scratch.path / "world.json"
        write(twin, file)
        source = SimulatedSource(["--world", str(file)], display.interval_ms / 1000, not display.no_records)
        return show([Shown(source=source, name=f"twin of {name}", display=display, lab=source)])
    finally:
        scratch.remove()


def described(twin: Twin, name: str, to_lose: bool) -> list[str]:
    """Return what a twin has, and in what it is not like the cluster called `name`. `to_lose` says whether it
    is only there to lose something: then what is down in the model goes down first."""
    world, unlike = twin.world, twin.unlike
    topics = [topic for topic in world.topics if topic.name != OFFSETS_TOPIC]
    counts = (
        plural(len(world.brokers), "broker"),
        plural(len(topics), "topic"),
        plural(sum(topic.partitions for topic in topics), "partition"),
        plural(len(world.producers), "producer"),
        plural(len(world.groups), "group"),
    )
    words = {**WORDS, Unlike.DOWN: DOWN_FIRST} if to_lose else WORDS
    return [f"twin of {name}: {', '.join(counts)}", *(words[kind].format(n=n) for kind, n in unlike.items())]


WORDS: Mapping[Unlike, str] = {
    Unlike.DOWN: "brokers that are down in the model are up in its twin: {n}",
    Unlike.OUT_OF_SYNC: "other replicas that are not in sync in the model, and are in the twin: {n}",
    Unlike.FAILED_DIRS: "log directories that have failed in the model, and work in the twin: {n}",
    Unlike.CONTROLLERS_TOO: "brokers that are controllers, too, and only brokers in the twin: {n}",
    Unlike.TRAFFIC_UNKNOWN: "topics whose rate is not known, and that nobody writes to in the twin: {n}",
    Unlike.CONFIGS: "settings of topics that a simulated cluster does not have: {n}",
    Unlike.MIN_ISR_UNKNOWN: "topics whose min.insync.replicas is not known, and is 1 in the twin: {n}",
    Unlike.KINDS: "groups of another kind, whose members are consumers in the twin: {n}",
    Unlike.ASSIGNORS: "groups with an assignor for which the twin has range: {n}",
    Unlike.LAGS: "groups that lag by more than the 10 minutes that the twin has of the past: {n}",
    Unlike.CONNECT: "groups of Kafka Connect's workers, which are left out: {n}",
    Unlike.GROUPS_LEFT_OUT: "groups left out: nobody knows what they read, or they are too large: {n}",
    Unlike.MOVES: "reassignments that are not going on in the twin: {n}",
    Unlike.ABANDONED: "groups that nobody uses any more, which are left out: {n}",
    Unlike.INTERNAL: "internal topics besides __consumer_offsets, which are left out: {n}",
}

DOWN_FIRST = "brokers that are down in the model go down in its twin before the loss: {n}"


def compared(lost: str, said: Outage, done: Outage) -> list[str]:
    """Return what was forecast of a loss, beside what it did in the twin."""
    rows = [
        ("without a leader", said.leaderless, done.leaderless),
        ("under min ISR", said.under_min, done.under_min),
    ]
    lines = [f"{f'partitions after losing {lost}':34}{'kview check':>12}{'the twin':>10}"]
    for words, forecast, outcome in rows:
        lines.append(f"{words:34}{len(forecast):12,}{len(outcome):10,}")
        for whose, only in (("kview check", forecast - outcome), ("the twin", outcome - forecast)):
            if only:
                names = [f"{topic}-{partition}" for topic, partition in sorted(only)]
                lines.append(
                    f"  only {whose}: {', '.join(names[:MOST_NAMES])}{' …' * (len(names) > MOST_NAMES)}"
                )
    return lines
