"""What is set in a simulated cluster, in words."""

from collections.abc import Mapping

from kview.language.glyphs import ELLIPSIS
from kview.language.words import duration, latency, plural, rate, size
from kview.model.lab import GroupSetting, LabSettings, LinkSetting, ProducerSetting, Setting, TopicSetting

MIN_ISR = "min.insync.replicas"

KINDS: Mapping[type, str] = {
    ProducerSetting: "producer",
    GroupSetting: "group",
    TopicSetting: "topic",
    LinkSetting: "network",
}

NOT_ASKED = f"asking the simulated cluster what is set {ELLIPSIS}"
NO_ANSWER = "the simulated cluster does not say what is set"
NOTHING = "nothing can be adjusted in this cluster"
NEEDS_LAB = "adjusting needs a simulated cluster (kview --simulate)"
NOTHING_TO_UNDO = "nothing to undo: this lab is set as you found it"


def kind(of: Setting) -> str:
    """Return what a setting is about: `producer`."""
    return KINDS[type(of)]


def subject(of: Setting) -> str:
    """Return the name of what is set: `invoice-service`, `broker 4`."""
    return f"broker {of.broker}" if isinstance(of, LinkSetting) else of.name


def now(of: Setting) -> str:
    """Return what is set: `4,400 records/s`, `3 members, paused`."""
    match of:
        case ProducerSetting():
            return f"paused ({rate(of.rate)}/s)" if of.paused else f"{rate(of.rate)} records/s"
        case GroupSetting():
            return f"{plural(of.members, 'member')}{', paused' if of.paused and of.members else ''}"
        case LinkSetting():
            return f"{size(of.bytes_per_second)}/s each way"
        case TopicSetting():
            return f"{MIN_ISR} {of.min_isr}"


def value(of: Setting) -> tuple[float, str]:
    """Return what is set as a number, and its unit."""
    match of:
        case ProducerSetting():
            return of.rate, "records/s"
        case GroupSetting():
            return of.members, "members"
        case LinkSetting():
            return of.bytes_per_second, "bytes/s"
        case TopicSetting():
            return of.min_isr, MIN_ISR


def initial_value(of: Setting) -> float:
    """Return what was set at the start as a number, in the unit of `value`."""
    match of:
        case ProducerSetting():
            return of.initial_rate
        case GroupSetting():
            return of.initial_members
        case LinkSetting():
            return of.initial_bytes_per_second
        case TopicSetting():
            return of.initial_min_isr


def paused(of: Setting) -> bool:
    """Return whether a producer or a group is paused."""
    return isinstance(of, ProducerSetting | GroupSetting) and of.paused


def initially(of: Setting) -> str:
    """Return what was set at the start, '' if that has not changed: `4,400`."""
    if not changed(of):
        return ""
    match of:
        case ProducerSetting():
            return rate(of.initial_rate) if of.rate != of.initial_rate else "sending"
        case GroupSetting():
            return str(of.initial_members) if of.members != of.initial_members else "reading"
        case LinkSetting():
            return f"{size(of.initial_bytes_per_second)}/s"
        case TopicSetting():
            return str(of.initial_min_isr)


def changed(of: Setting) -> bool:
    """Return whether something is set that was not so at the start."""
    match of:
        case ProducerSetting():
            return of.paused or of.rate != of.initial_rate
        case GroupSetting():
            return (of.paused and of.members > 0) or of.members != of.initial_members
        case LinkSetting():
            return of.bytes_per_second != of.initial_bytes_per_second
        case TopicSetting():
            return of.min_isr != of.initial_min_isr


def details(of: Setting) -> str:
    """Return what else is set: `to invoice, acks=all, 220 B a record, no keys`."""
    match of:
        case ProducerSetting():
            keys = f"{plural(of.keys, 'key')}, skew {of.skew:g}" if of.keys else "no keys"
            acks = "all" if of.acks < 0 else str(of.acks)
            return f"to {of.topic}, acks={acks}, {keys}, {size(of.record_bytes)} a record"
        case GroupSetting():
            limit = f"≤ {rate(of.rate)} records/s a member" if of.rate else "as fast as it can"
            topics = ", ".join(of.topics[:2]) + (f" + {len(of.topics) - 2:,} more" if of.topics[2:] else "")
            return f"reads {topics}, {limit}, commits every {duration(of.commit_interval_ms)}"
        case LinkSetting():
            return f"{latency(of.latency_us)} to every other node"
        case TopicSetting():
            return plural(of.replicas, "replica")


_WATCH: Mapping[type, str] = {
    ProducerSetting: "A higher rate makes slow groups fall behind: watch their lag. With acks=all the"
    " producer waits for every in-sync replica.",
    GroupSetting: "Each partition has one reader: more members than partitions leave some idle. While a group"
    " is paused, its lag grows.",
    TopicSetting: "With fewer in-sync replicas than this, the leader refuses writes with acks=all: set it to"
    " the number of replicas, then crash a broker.",
    LinkSetting: "Halve it until followers cannot keep up: they leave the ISR, and return once there is"
    " bandwidth again.",
}


def watch(of: Setting) -> str:
    """Return what else is set, what changing a setting does to the cluster, and where that shows."""
    also = details(of)
    return f"{also[:1].upper()}{also[1:]}. {_WATCH[type(of)]}"


def count_changed(settings: LabSettings) -> int:
    """Return how many things are not set as they were at the start."""
    return sum(map(changed, settings))


def at_limit(of: Setting, up: bool) -> str:
    """Return why a setting cannot go further up or down."""
    match of:
        case ProducerSetting(paused=True):
            return f"{of.name} is paused: resume it first"
        case ProducerSetting():
            most = f"already sends {rate(of.rate)} records/s, the most that this lab allows"
            return f"{of.name} {most if up else 'sends no records already'}"
        case GroupSetting():
            most = f"already has {plural(of.members, 'member')}, the most that this lab allows"
            return f"{of.name} {most if up else 'has no members already'}"
        case LinkSetting():
            end = "most" if up else "least"
            return f"the network of broker {of.broker} already carries the {end} that this lab allows"
        case TopicSetting():
            if up:
                replicas = plural(of.replicas, "replica")
                return f"{of.name} has only {replicas}: with a higher value it could never be written"
            return f"{MIN_ISR} of {of.name} is 1 already, the lowest value"


def no_pause(of: Setting) -> str:
    """Return that something cannot be paused."""
    if isinstance(of, GroupSetting):
        return f"{of.name} has no members: add one first"
    return f"only producers and groups can be paused, not the {kind(of)} {subject(of)}".replace(
        "network broker", "network of broker"
    )


def no_members(of: Setting) -> str:
    """Return that there is no member to kill."""
    if isinstance(of, GroupSetting):
        return f"{of.name} has no members: add one first"
    return f"only groups have members: {subject(of)} has none"
