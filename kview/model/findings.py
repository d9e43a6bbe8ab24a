"""Findings: what is wrong now, as facts. `kview.language.findings` puts them into words."""

from enum import StrEnum

from msgspec import Struct

from kview.model.events import Severity
from kview.model.failures import NO_FAILURE, Cause
from kview.model.units import UNKNOWN, UNKNOWN_ID


class FindingKind(StrEnum):
    """What can be wrong with a cluster or its clients.

    JSON documents contain the values, so they must not change.
    """

    ALL_WELL = "all_well"
    """`count` brokers are up, every partition has a leader and every replica is in sync, and nothing is wrong
    with the `groups` consumer groups."""
    CLUSTER_WELL = "cluster_well"
    """The same of the cluster alone: there are no groups, or other findings say more about the rest."""
    NO_PARTITIONS = "no_partitions"
    """`count` brokers are up, and no partition has been seen."""
    NOTHING_KNOWN = "nothing_known"
    """No broker has answered yet."""
    NO_BROKER_ANSWERS = "no_broker_answers"
    METADATA_FAILED = "metadata_failed"
    """What metadata tells is from `since_ms`, because of `cause` in the last answers."""
    NOT_AUTHORIZED = "not_authorized"
    """There may be topics or groups that kview may not see. Kafka's error number in `cause` says which."""
    BROKERS_SILENT = "brokers_silent"
    """`partitions` and `internal_partitions` count the partitions that still list these brokers as
    leaders."""
    WATERMARK_FROZEN = "watermark_frozen"
    """Another `count` watermarks are frozen because their leaders are silent. BROKERS_SILENT already reports
    those."""
    QUORUM_HEARS_BROKERS = "quorum_hears_brokers"
    """Brokers that do not answer kview live: they still fetch from the controller quorum, or others still
    read from them. `partitions` and `internal_partitions` count the partitions that they lead."""
    BROKERS_SLOW = "brokers_slow"
    """The slowest of `brokers` takes `count` ms to answer, much longer than its peers or than before."""
    BROKERS_LATE = "brokers_late"
    """`brokers` owe an answer and may be silent soon. The first of them has not answered since `since_ms`."""
    BROKERS_CUT_OFF = "brokers_cut_off"
    """`brokers` answer, and do not reach the active controller: they go on with old metadata. The quorum has
    heard nothing of one of them since `since_ms`."""
    FENCING_DUE = "fencing_due"
    """The first of `brokers` will be fenced at about `due_ms`."""
    BROKERS_STARTING = "brokers_starting"
    """`brokers` are listed (again), and have not answered yet."""
    BROKERS_FENCED = "brokers_fenced"
    BROKERS_GONE = "brokers_gone"
    LOG_DIR_OFFLINE = "log_dir_offline"
    """Log directories at `paths` of a broker that is up have failed: of `brokers`, which is one. `partitions`
    and `internal_partitions` count the partitions with a replica there. For `count` of them it was the only
    replica or the leader."""
    NO_LEADER = "no_leader"
    SILENT_LEADER = "silent_leader"
    UNDER_MIN_ISR = "under_min_isr"
    UNDER_REPLICATED = "under_replicated"
    AT_MIN_ISR = "at_min_isr"
    UNCLEAN_ELECTION = "unclean_election"
    """Partitions, the first of them of `topics`, got leaders that were not in sync. The last such election
    was at `since_ms`. They lost at least `count` records; UNKNOWN if nothing is known of these."""
    LEADER_RECORDS_LOST = "leader_records_lost"
    """At least `count` records that only the old leaders of partitions had were lost at `since_ms`."""
    PARTITIONS_UNREAD = "partitions_unread"
    """Leaders that answer have refused since `since_ms` to answer for partitions, because of `cause`."""
    RECORDS_LOST = "records_lost"
    """`count` records were deleted before `group` read them."""
    NO_CONTROLLER = "no_controller"
    QUORUM_SILENT = "quorum_silent"
    """Nobody has answered about the controller quorum since `since_ms`."""
    QUORUM_LOST = "quorum_lost"
    """The active controller, which `controllers` has, has not heard from a majority of its `count` voters
    since `since_ms`. Whether these are lost is not known."""
    CONTROLLERS_LOST = "controllers_lost"
    """`controllers` are missing from the quorum, which has `count` voters."""
    OPEN_TRANSACTION = "open_transaction"
    """`transaction` holds back the last stable offset of `partitions` (and `internal_partitions`), by `count`
    records. It has used up half of its timeout, or `groups` groups, the first of them `group`, wait for it.
    `cause` says why nobody tells whose it is."""
    HANGING_TRANSACTION = "hanging_transaction"
    """The same of a transaction that no coordinator has: only an abort ends it."""
    GROUPS_TROUBLED = "groups_troubled"
    """`groups` groups have a problem. `group` has the worst: `verdict`, and it is `behind_ms` behind. `count`
    of them have this verdict."""
    GROUPS_UNREAD = "groups_unread"
    """The figures of `groups` groups are old. Those of `group` have not been read since `since_ms`, because
    of `cause` at its `coordinator`."""
    GROUPS_UNJUDGED = "groups_unjudged"
    """There is no verdict on `groups` groups, because too little is known about them."""
    CONNECT_TASK_FAILED = "connect_task_failed"
    """`count` connectors and tasks of Kafka Connect have failed. `connector`, `task` and `trace` are of the
    first."""
    CONNECTORS_UNREAD = "connectors_unread"
    """The states of connectors are unknown, because of `cause`. They were last read at `since_ms`."""
    THROTTLE_LEFT = "throttle_left"
    """`brokers` and `count` topics, the first of them `topics`, have a throttle on the copying of replicas,
    although nothing is reassigned."""
    INPUT_FELL = "input_fell"
    """The input of `count` topics, the first of them `topics`, is far below its level of the last minutes:
    that of the first fell from `rate_before` to `rate` at `since_ms`."""
    LEADS_NOTHING = "leads_nothing"
    """`brokers` are up and lead nothing, although they are the preferred leaders of some partitions."""
    APIS_DIFFER = "apis_differ"
    """`brokers` have offered other APIs than most brokers since `since_ms`, or since kview began to watch."""
    NOT_PREFERRED = "not_preferred"
    """Partitions are not led by their preferred leaders, although these are up."""


MOST_TOPICS = 20
"""The most topics that a finding names which counts them, or their partitions."""


class OpenTransaction(Struct, frozen=True):
    """Who holds back the last stable offset of a partition. '' and UNKNOWN for what is not known."""

    topic: str
    partition: int
    start_offset: int
    """Where the transaction begins in the partition."""
    producer_id: int = UNKNOWN
    producer_epoch: int = UNKNOWN
    transactional_id: str = ""
    coordinator: int = UNKNOWN_ID
    timeout_ms: int = UNKNOWN
    server: str = ""
    """The address of a broker, as tools want it."""


class Finding(Struct, frozen=True):
    """Something that is wrong now, or the statement that nothing is."""

    kind: FindingKind
    severity: Severity
    brokers: tuple[int, ...] = ()
    controllers: tuple[int, ...] = ()
    rack: str = ""
    """The rack, if `brokers` are all of its brokers and there are several."""
    paths: tuple[str, ...] = ()
    """The log directories that it is about."""
    topics: tuple[str, ...] = ()
    """The first topics that are concerned."""
    group: str = ""
    groups: int = 0
    """The number of groups that are concerned, `group` included."""
    verdict: str = ""
    """The verdict on `group`."""
    behind_ms: int = UNKNOWN
    """The lag of `group` in time."""
    behind_is_bound: bool = False
    """Whether `behind_ms` is only a lower bound."""
    behind_is_estimate: bool = False
    """Whether `behind_ms` is only an estimate."""
    connector: str = ""
    """The connector of Kafka Connect that it is about."""
    task: int = UNKNOWN_ID
    """The task of `connector`, CONNECTOR_TASK for the connector itself."""
    trace: str = ""
    """The line of its trace that says why it failed, '' if there is none."""
    partitions: int = 0
    """The number of partitions of the user's topics that are concerned."""
    internal_partitions: int = 0
    count: int = UNKNOWN
    """Another count, which depends on the kind. UNKNOWN if the kind has none."""
    count_is_bound: bool = False
    """Whether `count` is only a lower bound."""
    rate_before: int = UNKNOWN
    rate: int = UNKNOWN
    """Records per second, before and now."""
    since_ms: int = UNKNOWN
    """When this began, in epoch ms."""
    since_is_bound: bool = False
    """Whether it may have begun before `since_ms`, when kview was not watching."""
    due_ms: int = UNKNOWN
    """When something will happen, in epoch ms, as an estimate."""
    cause: Cause = NO_FAILURE
    """Why something was not answered."""
    coordinator: int = UNKNOWN_ID
    """The coordinator of `group`, if it is the reason."""
    transaction: OpenTransaction | None = None
