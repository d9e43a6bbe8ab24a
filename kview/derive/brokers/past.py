"""What is carried from step to step about brokers: their answers, the quorum's leader, their disks."""

from msgspec import Struct, field

from kview.derive.brokers import log_dirs, slowness
from kview.derive.brokers.log_dirs import Rooms
from kview.derive.brokers.quorum import Term
from kview.derive.brokers.slowness import Slowness
from kview.derive.brokers.throttles import Quiet
from kview.model.snapshot import Snapshot


class Brokers(Struct, frozen=True):
    """The brokers as of a step."""

    slowness: Slowness = field(default_factory=Slowness)
    term: Term = field(default_factory=Term)
    rooms: Rooms = field(default_factory=dict)
    quiet: Quiet = field(default_factory=Quiet)

    def follow(self, then: Snapshot, snapshot: Snapshot) -> "Brokers":
        """Add a step. `then` is the previous snapshot; an empty one in the first step."""
        return Brokers(
            slowness.follow(self.slowness, snapshot.brokers, snapshot.observation.ended_ms),
            self.term.next(snapshot.observation),
            log_dirs.follow(self.rooms, then.log_dirs, snapshot.log_dirs),
            self.quiet.next(snapshot),
        )
