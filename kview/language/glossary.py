"""The glossary: the signs, a dozen words, and what each figure of a screen means. One sentence each."""

from collections.abc import Iterable, Mapping

from kview.language import glyphs, words

SIGNS: tuple[tuple[str, str], ...] = (
    (glyphs.LEADER, "a leader, or healthy"),
    (glyphs.FOLLOWER, "a follower in the ISR; underlined: preferred"),
    (glyphs.OUT_OF_SYNC, "a follower outside the ISR, or too few in it"),
    (glyphs.ADDED, f"a replica being added; {glyphs.REMOVED} one being removed"),
    (glyphs.DEAD, "silent or offline: data or access at risk"),
    (glyphs.FROZEN, "frozen: the high watermark stands still"),
    (glyphs.UP, "growing, moved, slow, or one step from risk"),
    (glyphs.DOWN, "shrinking"),
    (glyphs.NONE, "not known; ≥ a lower bound; ≈ an estimate"),
    (words.UNSEEN, "kview cannot reach it, but the cluster can"),
    (glyphs.ELLIPSIS, "not known yet: too little has been seen"),
)

WORDS: tuple[tuple[str, str], ...] = (
    ("silent", "does not answer kview; the cluster may not know"),
    ("frozen", "the watermark waits for a silent replica"),
    ("verdict", "what is wrong with a group, and why"),
    ("ISR", "replicas in sync: if the leader fails, one leads"),
    ("min ISR", "with fewer in sync, acks=all writes are refused"),
    ("watermark", "consumers read up to here: all the ISR has it"),
    ("uncommitted", "above the watermark: it can still be lost"),
    ("epoch", "goes up by one with each new leader"),
    ("fenced", "taken out by the controller: others lead now"),
    ("preferred leader", "the first broker in the replica list"),
    ("rack-safe", "survives the loss of any one rack"),
    ("lag", "records that a group has not committed yet"),
    ("behind", "the age of the oldest record not committed"),
)

_FIGURES: Mapping[str, str] = {
    # brokers
    "leads": "partitions that this broker leads",
    "copies": "partitions of which this broker has a replica",
    "replicas": "how many it stores, or which brokers store it",
    "latency": "median time of kview's own small requests",
    "disk": "bytes of all logs on the broker's disks",
    "in, last minute": "records in per second, up to the peak",
    # partitions and topics
    "leader·ep": "the leader, and its epoch after the dot",
    "isr": "replicas in sync, of all",
    "log start": "the oldest offset that is still stored",
    "log end": "the offset of the leader's next record",
    "uncomm.": "log end minus watermark",
    "min isr": "min.insync.replicas in force",
    "size": "bytes of the leaders' logs",
    # groups
    "read/s": "records that the group commits per second",
    "write/s": "records written per second to its partitions",
    "coordinator": "the broker that keeps the group's offsets",
    "assignor": "how partitions are shared among members",
    "caught up in": "time until lag is 0 at these rates",
    "CURRENT-OFFSET": "the next offset that the group will read",
    "LOG-END-OFFSET": "the watermark: as far as a consumer can read",
    "LAG": "LOG-END-OFFSET minus CURRENT-OFFSET",
    # rates
    "in rec/s": "records written per second",
    "out rec/s": "records that groups commit per second",
    "in bytes/s ≈": "records × mean size in the leader's log",
    "× mean": "the busiest partition, in mean partitions",
    "written": "records written to the topics that it reads",
    "replicated": "records that followers copied per second",
    "cross-rack": "replicated records that went to another rack",
    "p50 p95 p99": "50, 95, 99 % of seconds were at or below it",
    "without a leader": "all partitions together: 3 for 4 s are 12 s",
    "without a live leader": "no leader, or one that is silent",
    "direct rates": "between two observations, without Spark",
}

THROUGHPUT_FIGURES = (
    "× mean",
    "written",
    "replicated",
    "cross-rack",
    "p50 p95 p99",
    "without a live leader",
    "without a leader",
    "direct rates",
)
"""The figures of the throughput screen besides those of its list."""


def figures(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the meanings of the figures with these names, each once, without those that have none.

    The WORDS are left out, because they are explained on every screen.
    """
    wanted = dict.fromkeys(name.strip() for name in names)
    explained = {word for word, _ in WORDS}
    return [(name, _FIGURES[name]) for name in wanted if name in _FIGURES and name not in explained]
