"""The cluster's end of the line protocol: one line in, one line out, `ok …` or `error …`."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from kview.errors import BadUse, ErrorKind
from kview.lab.commands import parse
from kview.language.errors import sentence
from kview.model.faults import WORDS
from kview.model.ports import FaultCommand, FaultKind
from kview.simulate.cluster import Cluster
from kview.simulate.nodes import ProcessState


class Console:
    """Carries out what the lines ask of `cluster`.

    `counters` gives what `counters` answers, `held_ms` how far the cluster's clock is behind the wall's,
    `end` ends the run.
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
        """Carry out one line and say what was done, and how to undo it."""
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
            return f"error {sentence(error)}"

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
                raise BadUse(ErrorKind.NO_ACTIVE_CONTROLLER)
            return _said(kind, node=self._named(node), id=node)
        if kind is FaultKind.LOSE_RACK:
            racks = sorted({broker.rack for broker in cluster.world.brokers})
            if command.target not in racks:
                raise BadUse(ErrorKind.RACK_UNKNOWN, rack=command.target, racks=tuple(racks))
            if not cluster.lose_rack(command.target):
                raise BadUse(ErrorKind.RACK_DOWN, rack=command.target)
            return _said(kind, rack=command.target)
        return self._apply_to_node(command, int(command.target))

    def _apply_to_node(self, command: FaultCommand, node: int) -> str:
        cluster, kind = self._cluster, command.kind
        brokers, controllers = cluster.broker_ids(), cluster.world.controllers
        if node not in brokers and node not in controllers:
            raise BadUse(
                ErrorKind.NODE_UNKNOWN,
                node=node,
                first=brokers[0],
                last=brokers[-1],
                controllers=tuple(map(str, controllers)),
            )
        state = cluster.process(node)
        role = "controller" if node in controllers else "broker"
        named = self._named(node)
        faulty = any(fault.node == node for fault in cluster.faults())
        if kind is FaultKind.START and not faulty:
            raise BadUse(ErrorKind.NODE_WITHOUT_FAULT, role=role, node=node)
        killable = state is ProcessState.HUNG and kind is FaultKind.CRASH
        if kind is not FaultKind.START and state is not ProcessState.RUNNING and not killable:
            frozen = state is ProcessState.HUNG
            raise BadUse(ErrorKind.NODE_FROZEN if frozen else ErrorKind.NODE_DOWN, role=role, node=node)
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
