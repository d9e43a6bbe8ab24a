"""What an incident says about a simulated cluster, held against what happened there, over many seeds."""

from functools import cache
from itertools import pairwise

import pytest

from kview.derive.fold import State, step
from kview.model.incidents import Incident, IncidentKind, PhaseKind
from kview.model.units import UNKNOWN
from tests.derive.engine_observer import Engine, Key

OBSERVATIONS = 60
STALE_MS = 10_000
"""A broker that stops may have lost its leaderships this long before a slow broker tells kview."""
ORDERED = (PhaseKind.SILENT, PhaseKind.FENCED, PhaseKind.ISR_FULL)


def played(seed: int) -> tuple[Engine, list[Incident]]:
    """Play a seed, and return every incident as it was last seen."""
    engine, state, last = Engine(seed), State(), {}
    for snapshot in engine.watch(OBSERVATIONS):
        state, view = step(state, snapshot)
        for incident in view.incidents:
            assert incident.is_open or incident.phases, "no incident ends without a reason"
            last[incident.key] = incident
    return engine, list(last.values())


@cache
def check(seed: int) -> int:
    """Hold a seed's incidents against the truth, and return the records they say are gone."""
    engine, incidents = played(seed)
    said: dict[Key, list[tuple[int, int, int]]] = {}
    for incident in incidents:
        times = [phase.at_ms for phase in incident.phases]
        assert times == sorted(times) and (not times or times[0] >= incident.began_ms), incident
        if not incident.is_open:
            assert times[-1] == incident.ended_ms, incident
        in_order = [found.at_ms for kind in ORDERED if (found := incident.phase(kind))]
        assert all(a <= b for a, b in pairwise(in_order)), incident
        _right_times(engine, incident)
        until = engine.now_ms if incident.is_open else incident.ended_ms
        for one in incident.hit:
            if one.gone != UNKNOWN:
                key = (one.topic, one.partition)
                said.setdefault(key, []).append((incident.began_ms, until, one.gone))
    total = 0
    for key, claims in said.items():
        for began_ms, until_ms, gone in claims:
            truth = engine.truth.lost(key, began_ms - STALE_MS, until_ms)
            assert gone <= truth, f"seed {seed}: {key} lost {truth}, and kview says ≥ {gone}"
        total += sum(gone for _, _, gone in claims)
        assert sum(gone for *_, gone in claims) <= engine.truth.lost(key, 0, engine.now_ms), (
            "none is told twice"
        )
    return total


def _right_times(engine: Engine, incident: Incident) -> None:
    """A broker is silent from the first question after its crash, and fenced when the controller said so."""
    if incident.kind is not IncidentKind.BROKERS or len(incident.brokers) != 1:
        return
    (broker,) = incident.brokers
    fenced = incident.phase(PhaseKind.FENCED)
    if fenced is not None:
        assert fenced.at_ms in engine.told_fenced_ms[broker], incident
        assert any(true_ms <= fenced.at_ms for true_ms in engine.truth.fenced_ms[broker]), incident


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--incident-seeds")))


@pytest.mark.quick(3)
def test_the_bound_is_never_above_the_truth(seed: int) -> None:
    check(seed)


@pytest.mark.slow  # CI counts more of them, too
def test_losses_are_found() -> None:
    """Otherwise the bound could be 0 all along."""
    assert all(check(seed) > 0 for seed in (17, 22, 26, 27))
