"""A broker's requests to change the ISRs of the partitions it leads.

Source: kafka.server.AlterPartitionManager, and the ISR rules of kafka.cluster.Partition.
"""

from collections.abc import Mapping

from kview.simulate.brokers.process import BrokerProcess
from kview.simulate.brokers.replica import Follower, Replica
from kview.simulate.controllers.controller import Controller
from kview.simulate.kernel import Timer
from kview.simulate.metadata import TopicPartition

RETRY_US = 500_000
"""Time to wait before a failed request to the controller is sent again."""


class IsrChanges:
    """Asks the controller to add followers that have caught up, and to remove those that lag.

    `latency_us` is the network's latency to the controller. A follower lags after `lag_max_us`.
    """

    def __init__(
        self,
        process: BrokerProcess,
        replicas: Mapping[TopicPartition, Replica],
        controller: Controller,
        latency_us: int,
        lag_max_us: int,
    ) -> None:
        self._process = process
        self._replicas = replicas
        self._controller = controller
        self._latency_us = latency_us
        self._lag_max_us = lag_max_us
        self._asked: dict[Replica, tuple[int, ...]] = {}
        self._timer: Timer | None = None

    def process_started(self) -> None:
        """Begin to look for followers that lag."""
        kernel = self._process.kernel
        phase_us = kernel.random("lag-check").randrange(max(1, self._lag_max_us // 2))
        self._process.after(phase_us, self._check_lag)

    def process_ended(self) -> None:
        """Forget the requests that have not been sent."""
        self._process.kernel.cancel(self._timer)
        self._timer = None
        self._asked.clear()

    def follower_fetched(self, replica: Replica, follower: Follower) -> None:
        """Advance the high watermark after a follower's fetch, and ask to add the follower to the ISR if it
        may join."""
        replica.advance()
        if follower.broker not in replica.isr and replica.isr_pending is None and replica.may_join(follower):
            self.ask(replica, (*replica.isr, follower.broker))

    def ask(self, replica: Replica, isr: tuple[int, ...]) -> None:
        """Ask the controller to change a partition's ISR to `isr` (AlterPartition).

        Changes requested at almost the same time are sent together.
        """
        replica.isr_pending = tuple(r for r in replica.replicas if r in isr)
        self._asked[replica] = replica.isr_pending
        if self._timer is None:
            delay_us = self._latency_us + self._process.node.slow_us
            self._timer = self._process.after(delay_us, self._alter_partitions)

    def _alter_partitions(self) -> None:
        self._timer = None
        asked, self._asked = self._asked, {}
        still = {r.key: r for r in asked if r.leading and r.isr_pending is not None}
        refused = self._controller.alter_partitions(
            self._process.node.id,
            [(key, r.topic_id, r.leader_epoch, r.partition_epoch, asked[r]) for key, r in still.items()],
        )
        if refused is None:
            self._asked = {r: asked[r] for r in still.values()} | self._asked
            self._timer = self._process.after(RETRY_US, self._alter_partitions)
            return
        for key in refused:
            self._process.after(RETRY_US, self._refused, still[key])

    def _refused(self, replica: Replica) -> None:
        if replica.leading:
            replica.isr_pending = None
            replica.wake_followers()

    def _check_lag(self) -> None:
        self._process.after(max(1, self._lag_max_us // 2), self._check_lag)
        kernel, own = self._process.kernel, self._process.node.id
        now_us = kernel.now_us
        for replica in self._replicas.values():
            if not replica.leading or len(replica.isr) < 2 or replica.isr_pending is not None:
                continue
            followers = replica.followers
            late = [
                r
                for r in replica.isr
                if r != own and not replica.in_sync(followers[r], now_us, self._lag_max_us)
            ]
            if late:
                kernel.trace("lagging", *replica.key, *late)
                self.ask(replica, tuple(r for r in replica.isr if r not in late))
