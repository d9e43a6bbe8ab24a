"""Asks the cluster what a client of our own sees: whether each broker answers and how fast, and who leads."""

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from kafka.protocol.admin import ListPartitionReassignmentsRequest
from kafka.protocol.metadata import ApiVersionsRequest

from kview.model.address import Address
from tests.real_kafka.asking import PartitionSeen, ask, metadata, partitions_in
from tests.truth.clients import now_ms
from tests.truth.log import Partition, Placed, Probe, TruthLog

PROBE_TIMEOUT_S = 2.0
MIN_ISR = 2
"""min.insync.replicas of the user's topics that have three replicas."""
PLACE_EVERY_S = 0.5
PAUSE_S = (0.3, 0.6)
"""Random, because a regular pace could always meet the same turn of a duty cycle."""

Adding = Mapping[Partition, frozenset[int]]


class Probes:
    """One thread a broker, and one for Metadata, until `close`."""

    def __init__(
        self, addresses: dict[int, Address], log: TruthLog, answering: Callable[[], Address]
    ) -> None:
        self._log = log
        self._answering = answering
        self.moves = False
        """Whether anything may be reassigned."""
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._probe, args=(broker, address), name=f"probe-{broker}")
            for broker, address in addresses.items()
        ]
        self._threads.append(threading.Thread(target=self._place, name="probe-metadata"))

    def start(self) -> None:
        """Start asking."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop asking."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _probe(self, broker: int, address: Address) -> None:
        pause = random.Random(broker)
        found = self._log.probes.setdefault(broker, [])
        while not self._ending.wait(pause.uniform(*PAUSE_S)):
            sent_ms = now_ms()
            try:
                ask(address, ApiVersionsRequest(version=0), PROBE_TIMEOUT_S)
            except OSError:
                found.append(Probe(sent_ms, None))
            else:
                found.append(Probe(sent_ms, now_ms() - sent_ms))

    def _place(self) -> None:
        adding: Adding = {}
        while not self._ending.wait(PLACE_EVERY_S):
            before = adding
            try:
                address = self._answering()
                answer = metadata(address, None)
                adding = _adding(address) if self.moves else {}
            except (OSError, LookupError):
                continue  # nobody answers, or only just not
            offline = {
                broker
                for topic in answer.topics
                for partition in topic.partitions
                for broker in partition.offline_replicas
            }
            placed = _placed(now_ms(), partitions_in(answer), {**before, **adding})
            self._log.placed.append(replace(placed, moving=frozenset(adding), offline=frozenset(offline)))


def _adding(address: Address) -> Adding:
    """Return the replicas that reassignments add, by partition."""
    answer = ask(address, ListPartitionReassignmentsRequest(version=0, timeout_ms=2_000, topics=None))
    return {
        (topic.name, one.partition_index): frozenset(one.adding_replicas)
        for topic in answer.topics
        for one in topic.partitions
    }


def _placed(at_ms: int, seen: Mapping[str, Mapping[int, PartitionSeen]], adding: Adding) -> Placed:
    """`adding` is what was listed before or after: a reassignment may begin in between."""
    every = {(topic, number): one for topic, some in seen.items() for number, one in some.items()}
    nobody: frozenset[int] = frozenset()
    full = {key: set(one.replicas) - adding.get(key, nobody) for key, one in every.items()}
    in_sync = {key: full[key] & set(one.isr) for key, one in every.items()}
    short = frozenset(key for key in every if in_sync[key] < full[key])
    three = (key for key in every if not key[0].startswith("__") and len(full[key]) >= 3)
    return Placed(
        at_ms,
        leaders={key: one.leader for key, one in every.items()},
        without_leader=sum(one.leader < 0 for one in every.values()),
        under_replicated=len(short),
        under_min_isr=sum(len(in_sync[key]) < MIN_ISR for key in three),
        not_preferred=sum(one.leader != one.replicas[0] for one in every.values()),
        short=short,
    )
