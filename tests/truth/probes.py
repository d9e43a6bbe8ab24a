"""Asks the cluster what a client of our own sees: whether each broker answers and how fast, and who leads."""

import random
import threading
from collections.abc import Callable, Mapping

from kafka.protocol.metadata import ApiVersionsRequest

from kview.model.address import Address
from tests.real_kafka.asking import PartitionSeen, ask, metadata, partitions_in
from tests.truth.clients import now_ms
from tests.truth.log import Partition, Placed, Probe, TruthLog

PROBE_TIMEOUT_S = 2.0
MIN_ISR = 2
"""min.insync.replicas of the user's topics, which have three replicas."""
PAUSE_S = (0.15, 0.35)
"""Random, because a regular pace could always meet the same turn of a duty cycle."""


class Probes:
    """One thread a broker, and one for Metadata, until `close`."""

    def __init__(
        self, addresses: dict[int, Address], log: TruthLog, answering: Callable[[], Address]
    ) -> None:
        self._log = log
        self._answering = answering
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
        while not self._ending.wait(0.3):
            try:
                answer = metadata(self._answering(), None)
            except (OSError, LookupError):
                continue  # nobody answers, or only just not
            seen = {
                (topic, number): one
                for topic, of_topic in partitions_in(answer).items()
                for number, one in of_topic.items()
            }
            self._log.placed.append(_placed(now_ms(), seen))


def _placed(at_ms: int, seen: Mapping[Partition, PartitionSeen]) -> Placed:
    user = {key: one for key, one in seen.items() if not key[0].startswith("__")}
    return Placed(
        at_ms,
        leaders={key: one.leader for key, one in seen.items()},
        without_leader=sum(one.leader < 0 for one in seen.values()),
        under_replicated=sum(len(one.isr) < len(one.replicas) for one in seen.values()),
        under_min_isr=sum(len(one.isr) < MIN_ISR for one in user.values()),
        not_preferred=sum(one.leader != one.replicas[0] for one in seen.values()),
    )
