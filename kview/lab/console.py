"""The cluster's end of the line protocol: answers each line with one line, `ok …` or `error …`."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from kview.errors import BadUse
from kview.lab.commands import parse
from kview.model.faults import WORDS
from kview.model.ports import FaultCommand, FaultKind
from kview.simulate.cluster import Cluster
from kview.simulate.nodes import ProcessState


class Console:
    """Carries out commands on `cluster`.

    `counters` returns the answer to the command `counters`, `held_ms` how far the cluster's clock is behind
    the wall clock. `end` ends the run.
    """

    def __init__(
        self,
        cluster: Cluster,
        counters: Callable[[], Mapping[str, Any]],
        held_ms: Callable[[], int],
        end: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._counters = counters
        self._held_ms = held_ms
        self._end = end

    def answer(self, line: str) -> str:
        """Carry out one line. Return what was done, and how to undo it."""
        word = line.strip()
        if word == "status":
            return f"ok {self._status()}"
        if word == "counters":
            return f"ok {json.dumps(self._counters(), sort_keys=True, separators=(',', ':'))}"
        if word == "quit":
            self._end()
            return "ok the cluster ends"
        try:
            return f"ok {self._apply(parse(line))}"
        except BadUse as error:
            return f"error {error}"

    def _status(self) -> str:
        world = self._cluster.world
        faults = ", ".join(f"{fault.node} {fault.word}" for fault in self._cluster.faults())
        held_ms = self._held_ms()
        clock = f", clock {held_ms} ms behind after a pause" if held_ms else ""
        nodes = f"{len(world.brokers)} brokers, {len(world.controllers)} controllers"
        return f"{nodes}{clock}; faults: {faults or 'none'}"

    def _apply(self, command: FaultCommand) -> str:
        cluster, kind = self._cluster, command.kind
        if kind is FaultKind.UNDO:
            if not cluster.faults():
                return "there was no fault to undo"
            cluster.undo()
            return _said(kind)
        if kind is FaultKind.CRASH_CONTROLLER:
            node = cluster.crash_controller()
            if node < 0:
                raise BadUse("there is no active controller", "start one of them first")
            return _said(kind, node=self._named(node), id=node)
        if kind is FaultKind.LOSE_RACK:
            racks = sorted({broker.rack for broker in cluster.world.brokers})
            if command.target not in racks:
                raise BadUse(f"there is no rack {command.target!r}", f"the racks are {', '.join(racks)}")
            if not cluster.lose_rack(command.target):
                raise BadUse(
                    f"every broker of rack {command.target} is down already", "bring them back with undo"
                )
            return _said(kind, rack=command.target)
        return self._apply_to_node(command, int(command.target))

    def _apply_to_node(self, command: FaultCommand, node: int) -> str:
        cluster, kind = self._cluster, command.kind
        brokers, controllers = cluster.broker_ids(), cluster.world.controllers
        if node not in brokers and node not in controllers:
            there_are = (
                f"brokers are {brokers[0]} to {brokers[-1]}, controllers {', '.join(map(str, controllers))}"
            )
            raise BadUse(f"there is no node {node}", there_are)
        state = cluster.process(node)
        named = self._named(node)
        faulty = any(fault.node == node for fault in cluster.faults())
        if kind is FaultKind.START and not faulty:
            raise BadUse(f"{named} has no fault", "see status")
        killable = state is ProcessState.HUNG and kind is FaultKind.CRASH
        if kind is not FaultKind.START and state is not ProcessState.RUNNING and not killable:
            raise BadUse(f"{named} is {state}", f"bring it back first with start {node}")
        match kind:
            case FaultKind.CRASH:
                cluster.crash(node)
            case FaultKind.STOP:
                cluster.stop(node)
            case FaultKind.HANG:
                cluster.hang(node)
            case FaultKind.SLOW:
                cluster.slow(node, int(command.argument.removesuffix("ms")))
            case _:
                cluster.start(node)
        return _said(kind, node=named, id=node, argument=command.argument)

    def _named(self, node: int) -> str:
        return f"{'controller' if node in self._cluster.world.controllers else 'broker'} {node}"


def _said(kind: FaultKind, **words: object) -> str:
    explained = WORDS[kind]
    return f"{explained.does.format(**words)}; to undo it: {explained.undo.format(**words)}"
