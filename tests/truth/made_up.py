"""A made-up run for tests of the judge: 100 s of a healthy cluster with two groups. Tests add deeds."""

from dataclasses import replace

from tests.truth.frames import Frame, GroupSaid, Said
from tests.truth.log import Coordinator, Deed, Fencing, Placed, Probe, Track, TruthLog
from tests.truth.schedule import Do

BEGAN_MS = 1_790_000_000_000
SECONDS = 100
RATE = 10
"""Records a second."""
KEEPER, IDLER = "keeper", "idler"
"""A group that reads everything at once, and one that has a member and commits nothing more after 40 s."""
TOPIC = ("invoice", 0)


def at(second: float) -> int:
    """Return a moment of the run."""
    return BEGAN_MS + round(second * 1000)


def log() -> TruthLog:
    """Return the truth of a run in which nothing was done."""
    made = TruthLog(brokers=(0, 1, 2), coordinators=[Coordinator(at(0), 1)])
    made.ends[TOPIC] = Track()
    for group in (KEEPER, IDLER):
        made.committed[group, TOPIC] = Track()
        made.members[group] = Track([at(0)], [1])
        made.read[group] = Track()
    for second in range(SECONDS):
        made.ends[TOPIC].add(at(second), 1 + second * RATE)
        made.placed.append(placed(second))
        for group in (KEEPER, IDLER):
            if group == KEEPER or second <= 40:
                made.committed[group, TOPIC].add(at(second) + 1, 1 + second * RATE)
                made.read[group].add(at(second) + 1, 1 + second * RATE)
    for broker in made.brokers:
        made.probes[broker] = [Probe(at(tenth / 10), 2.0) for tenth in range(0, SECONDS * 10, 5)]
    return made


def placed(second: int, leader: int = 1, under_replicated: int = 0) -> Placed:
    """Return what Metadata says at a second."""
    return Placed(at(second), {TOPIC: leader}, 0, under_replicated, 0)


def crashed(broker: int = 1) -> TruthLog:
    """Return the truth of a run in which a broker is killed at 10 s, fenced at 18 s, started at 30 s, let in
    at 34.0 s, and answers from 34.5 s on."""
    made = log()
    made.deeds = [Deed(at(10), Do.KILL, broker), Deed(at(30), Do.START, broker)]
    made.fencing = (Fencing(at(18), broker, True), Fencing(at(34), broker, False))
    made.coordinators = [*made.coordinators, Coordinator(at(18.5), 2)]
    made.probes[broker] = [
        replace(one, took_ms=None) if at(10) <= one.sent_ms < at(34.5) else one for one in made.probes[broker]
    ]
    made.placed = [
        placed(second, leader=2, under_replicated=1) if 18 <= second < 36 else placed(second)
        for second in range(SECONDS)
    ]
    return made


def frame(
    second: float,
    severity: str = "calm",
    findings: tuple[Said, ...] = (Said("all_well", "calm"),),
    **other: object,
) -> Frame:
    """Return a frame that is right while nothing is wrong, with what `other` says instead."""
    honest = Frame(
        at_ms=at(second) + 300,
        began_ms=at(second),
        ended_ms=at(second) + 50,
        severity=severity,
        findings=findings,
        brokers={0: "up", 1: "up", 2: "up"},
        groups={KEEPER: GroupSaid("ok", 0, read_rate=10.0), IDLER: GroupSaid("ok", 0, read_rate=10.0)},
        badge="● 3 of 3 answer",
        badge_is_green=True,
    )
    return replace(honest, **other)  # type: ignore[arg-type]
