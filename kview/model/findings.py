"""Findings: what is wrong now, as facts. `kview.language.findings` puts them into words."""

from dataclasses import dataclass
from enum import StrEnum

from kview.model.events import Severity
from kview.model.units import UNKNOWN


class FindingKind(StrEnum):
    """What can be wrong with a cluster.

    JSON documents contain the values, so they must not change.
    """

    ALL_WELL = "all_well"
    """`count` brokers are up, every partition has a leader and every replica is in sync."""
    NO_PARTITIONS = "no_partitions"
    """`count` brokers are up, and no partition has been seen."""
    NOTHING_KNOWN = "nothing_known"
    """No broker has answered yet."""
    PAST_PENDING = "past_pending"
    """Nothing is wrong in the snapshot itself, but the observations before it are still being read."""
    REST_PENDING = "rest_pending"
    """There may be more findings: the observations before this moment are still being read."""
    NO_BROKER_ANSWERS = "no_broker_answers"
    BROKERS_SILENT = "brokers_silent"
    """`partitions` and `internal_partitions` count the partitions that still list these brokers as
    leaders."""
    WATERMARK_FROZEN = "watermark_frozen"
    """A further `count` watermarks are frozen because their leaders are silent. BROKERS_SILENT counts
    those."""
    QUORUM_HEARS_BROKERS = "quorum_hears_brokers"
    """Brokers that do not answer kview still fetch from the controller quorum."""
    FENCING_DUE = "fencing_due"
    """The first of `brokers` will be fenced at about `due_ms`."""
    BROKERS_FENCED = "brokers_fenced"
    BROKERS_GONE = "brokers_gone"
    NO_LEADER = "no_leader"
    SILENT_LEADER = "silent_leader"
    UNDER_MIN_ISR = "under_min_isr"
    UNDER_REPLICATED = "under_replicated"
    AT_MIN_ISR = "at_min_isr"
    RECORDS_LOST = "records_lost"
    """`count` records were deleted before `group` read them."""
    NO_CONTROLLER = "no_controller"
    QUORUM_SILENT = "quorum_silent"
    """Nobody has answered about the controller quorum since `since_ms`."""
    CONTROLLERS_LOST = "controllers_lost"
    """`controllers` are out of the quorum, which has `count` voters."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong now, or the statement that nothing is."""

    kind: FindingKind
    severity: Severity
    brokers: tuple[int, ...] = ()
    controllers: tuple[int, ...] = ()
    rack: str = ""
    """The rack, if `brokers` are all of its brokers and there are several."""
    group: str = ""
    partitions: int = 0
    """The number of partitions of the user's topics that are concerned."""
    internal_partitions: int = 0
    count: int = UNKNOWN
    """Another count, which depends on the kind. UNKNOWN if the kind has none."""
    since_ms: int = UNKNOWN
    """Since when this has been the case, epoch ms."""
    due_ms: int = UNKNOWN
    """When something will happen, epoch ms, an estimate."""
