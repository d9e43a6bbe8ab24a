"""A broker's state, which every list of brokers says with the same sign and words."""

import re
from datetime import UTC
from functools import cache

import numpy as np
import pytest

from kview.derive.view import View
from kview.model.failures import FailureKind
from kview.model.snapshot import Snapshot
from kview.model.states import BrokerState
from kview.plain.blocks import block
from tests.tui.harness import dashboard, lines, press, running, text, until
from tests.worlds import default_world, views

SAID = {
    0: "● up",
    1: "▲ slow",
    2: "▲ no reply 3 s",
    3: "◌ starting 1 s",
    4: "? silent 3 s",
    5: "◌ fenced 3 s",
    6: "✕ fenced 3 s",
    7: "✕ gone 3 s",
}
"""What is said about each broker. Brokers 6 and 7 are added to the default world."""

AGO_MS = 3_300
STARTED_AGO_MS = 1_300
"""Shorter: a broker that the cluster has heard for long, and kview has not, is one that only kview cannot
reach."""


@cache
def mixed() -> View:
    """A view in which every broker does something else."""
    world = default_world()
    node = type(world.nodes[0])
    world.nodes |= {6: node(6, "R1"), 7: node(7, "R2")}
    world.nodes[1].latency_us = 400_000
    snapshots = [world.tick() for _ in range(10)]
    world.cut(4, FailureKind.SILENT)
    snapshots += [world.tick() for _ in range(10)]
    _set(snapshots[-1], 2, BrokerState.UP, answers=False)
    _set(snapshots[-1], 3, BrokerState.STARTING, answers=False)
    _set(snapshots[-1], 4, BrokerState.SILENT, answers=False)
    _set(snapshots[-1], 5, BrokerState.FENCED, answers=True)
    _set(snapshots[-1], 6, BrokerState.FENCED, answers=False)
    _set(snapshots[-1], 7, BrokerState.GONE, answers=False)
    return list(views(snapshots))[-1]


def _set(snapshot: Snapshot, broker: int, state: BrokerState, answers: bool) -> None:
    table = snapshot.brokers
    (row,) = np.flatnonzero(table.id == broker).tolist()
    ago_ms = snapshot.observation.ended_ms - (STARTED_AGO_MS if state is BrokerState.STARTING else AGO_MS)
    table.state[row], table.answers[row] = state.value, answers
    table.since_ms[row] = ago_ms
    table.answered_ms[row] = snapshot.observation.ended_ms if answers else ago_ms


def states_on_tiles(drawn: list[str]) -> dict[int, str]:
    """The broker's id and state of each tile. One that is well shows its latency instead."""
    shown = re.findall(
        r"[▸ ](\d) ([●○◌✕▲?] (?:\d+ ms|[a-z][a-z ]*?(?: \d+ s)?))(?=  |$)", "\n".join(drawn), re.M
    )
    return {int(broker): re.sub(r"● \d+ ms", "● up", said) for broker, said in shown}


def states(drawn: list[str]) -> dict[int, str]:
    """The broker's id and state of each line that has them."""
    sign = "[●○◌✕▲?]"
    rows = (
        re.match(rf"[▸ ] +(?:R\d +)?(\d) +({sign}) (?:.*  )?([a-z][a-z ]*?(?: \d+ s)?)(?:  |$)", row)
        for row in drawn
    )
    return {int(row[1]): f"{row[2]} {row[3]}" for row in rows if row}


@running
async def test_the_overview_and_the_placement_say_the_same() -> None:
    async with dashboard(mixed()) as (app, pilot):
        app.clock_ms.now_ms = mixed().snapshot.observation.ended_ms  # type: ignore[attr-defined]
        await until(pilot, lambda: states_on_tiles(lines(app)[3:14]) == SAID, "the overview's states")
        await press(pilot, ["2"])
        await until(pilot, lambda: "leads  copies" in text(app), "the placement")
        assert states(lines(app)) == SAID


def test_the_text_says_it_too() -> None:
    assert states(block(mixed(), "here", UTC).splitlines()) == SAID


@running
async def test_what_only_kview_cannot_reach_is_not_called_dead_in_the_placement() -> None:
    async with dashboard(mixed()) as (app, pilot):
        await press(pilot, ["2"])
        await until(pilot, lambda: "leads  copies" in text(app), "the placement")
        while "invoice 10 partitions" not in text(app):
            await press(pilot, ["right"])
        (row,) = (line for line in lines(app) if re.match(r"[▸ ] +4 +[?] ", line))
        assert row.split()[2:12] == ["·", "?", "?", "?", "·", "·", "·", "?", "?", "?"], row


@pytest.mark.parametrize(
    ("leader", "epoch", "said"), [(-1, 7, "none·7"), (-(2**31), -(2**31), "–·–"), (4, 6, "4?·6")]
)
def test_an_unknown_leader_is_not_a_number_in_the_text(leader: int, epoch: int, said: str) -> None:
    view = mixed()
    table = view.snapshot.partitions
    (row,) = np.flatnonzero((table.topic == "invoice") & (table.partition == 3)).tolist()
    before = table.leader[row], table.leader_epoch[row]
    try:
        table.leader[row], table.leader_epoch[row] = leader, epoch
        assert re.search(rf"invoice +3 +{re.escape(said)} ", block(view, "here", UTC))
    finally:
        table.leader[row], table.leader_epoch[row] = before
