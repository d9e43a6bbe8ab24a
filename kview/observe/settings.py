"""The options and limits of observing."""

from msgspec import Struct


class ObserveSettings(Struct, frozen=True):
    """The options of observing: how often to ask for what, and how long to wait.

    Observations are `interval_s` apart.
    """

    interval_s: float = 1.0
    lags_first: bool = False
    """Whether the first observation of a big cluster reads only what lags need, so that a screen shows them
    soon."""
    silence_s: float = 1.5
    """A broker that owes an answer for this long and sends nothing is silent. Slow brokers answer in 0.2
    s."""
    slow_silence_s: float = 10.0
    """The same for forwarded or heavy requests, which may take longer because nothing waits for their
    answers."""
    retry_first_s: float = 0.2
    retry_most_s: float = 1.0
    """Limits of the pause between attempts to reach a silent broker. An attempt costs a millisecond, and
    people are waiting for the broker to return."""
    list_groups_rounds: int = 3
    log_start_rounds: int = 5
    last_stable_s: float = 5.0
    """How often last stable offsets are asked for. Those that transactions hold are asked for every time."""
    forwarded_rounds: int = 2
    """How often what is forwarded to the controller is asked for. The quorum is asked for every time."""
    transactions_s: float = 5.0
    """How often to ask who holds last stable offsets, while something does."""
    log_dirs_s: float = 30.0
    configs_s: float = 60.0
    near_configs_s: float = 3.5
    """How often settings of topics in sight or in trouble are read. With an observation every second, they
    are never older than 5 s."""
    connectors_s: float = 15.0
    """How often Kafka Connect is asked: a failed task stays failed until somebody restarts it."""
    connectors_within_s: float = 10.0
    """The longest time for its answer, from the connection to the last byte. Workers take milliseconds, and
    some seconds during a rebalance."""
    requests_per_second: int = 500
    bytes_per_second: int = 8_000_000
    """Limit of what reading offsets may cost a cluster. Above this limit, partitions are read in turn."""

    @property
    def phase_s(self) -> float:
        """The longest wait for metadata, and then for groups, in one observation."""
        return min(0.25, 0.25 * self.interval_s)

    @property
    def offsets_phase_s(self) -> float:
        """The longest wait for followers' log ends, and then for leaders' offsets, in one observation."""
        return min(0.35, 0.35 * self.interval_s)
