"""What a screen must show at every size: the panels in their lines, and the cells that matter most."""

import re

Size = tuple[int, int]

GOLDEN_SIZE: Size = (120, 40)
"""The size of the one golden file of each state."""

OTHER_SIZES: list[Size] = [(80, 24), (200, 50)]


def row(*cells: str) -> str:
    """A pattern of these cells in one line; wide screens may show numbers between two of them."""
    return r" +(?:[\d,/]+ +){0,2}".join(re.escape(cell) for cell in cells)


CRASHED = (
    r" 4 ✕ silent 3 s ",
    row("audit-log", "3", "4✕·5", "4✕", "318,054"),
    row("invoice", "3", "4✕·5", "4✕ 2○ 5○", "1,229,461", "–"),
    row("invoice", "1", "3·5", "3● 1○ 4✕", "1,227,435", "+1,764"),
)
FENCED_BROKER = (r"broker 4 fenced",)

CELLS: dict[str, tuple[str, ...]] = {
    "overview-healthy": (
        r"^ ▲ audit-export stopped .*● cluster healthy",
        r" 3 ● 2 ms .* 4 ● 2 ms .* 5 ● 2 ms ",
        r"▇ 1\.5 k .*▇ 1\.5 k .*▇ 840 ",
        row("invoice", "0", "0·5", "0● 3○ 1○", "1,222,462", "+4"),
    ),
    "overview-crash": (
        r"^  ✕ broker 4 silent 3\.4 s  .*fenced (in )?━+─+ ≈ 5\.5 s",
        *CRASHED,
        r"4✕·5 .* ✕ 3 s",
        r"3● 1○ 4✕ .* ▮ 3 s",
    ),
    "overview-fenced": (
        r"^  ✕ 1 partition down ",
        r" 4 ✕ fenced 10 s ",
        row("audit-log", "3", "none·6", "4✕", "318,054"),
        row("payment", "3", "2·6", "4✕ 2● 5○", "437,479", "+4"),
    ),
    "overview-back": (
        r"^ ▲ ",
        r" 3 ● 2 ms .* 4 ● 2 ms .* 5 ● 2 ms ",
        row("invoice", "3", "2·6", "4○ 2● 5○", "1,240,043", "+4"),
    ),
    "overview-paused": (r"❚❚ 08:54:23 · 3 m 20 s ago", *CRASHED, r"\[ \] step"),
    "overview-playing": (r"► ×4 08:54:23 of 08:53–09:54", *CRASHED, r"< > speed"),
    "placement": (
        *FENCED_BROKER,
        r" 4 +✕ +· +· +· +✕ +0 +1 +fenced 10 s",
        r"R1 +0 +● +● +· +· +· +1 +1 +up",
        row("audit-log", "4", "1", "1", "≥750") + " .*✕",
        row("invoice", "10", "3", "1", "4,400") + " .*▲",
    ),
    "topics": (
        *FENCED_BROKER,
        row("audit-log", "4") + r".* ✕ 1 no leader .*≥198,310",
        row("invoice", "10") + r".* ▲ 6 under-replicated .*4,400",
        row("payment", "6") + r".* ▲ 3 at min ISR .*2,400",
    ),
    "topic_groups": (
        *FENCED_BROKER,
        row("billing", "Stable 3/3") + r".* 270 .*● ok",
        row("reporting", "Stable 2/2"),
    ),
    "partitions": (
        *FENCED_BROKER,
        r"▸all 20 .*no leader 1 .*at min ISR 3  under-replicated 9",
        row("audit-log", "3", "none·6", "4✕"),
    ),
    "partition": (
        r"payment-2  ◌ at min ISR",
        r"→ if one more replica leaves the ISR",
        r"high watermark 436,546 +log end 436,550",
        r"^\W+1 ● .*436,550  leader",
        r"^\W+4 ✕ .*436,038  11 s ago",
        r"broker 4 left the ISR of 9 partitions",
    ),
    "broker": (
        r"broker 4  ✕ fenced 10 s",
        r"rack R2 +listener 127\.0\.0\.1:19096",
        row("audit-log", "3", "✕ in ISR", "none·6"),
        r"broker 4 was fenced",
    ),
    "topic": (
        *FENCED_BROKER,
        r"invoice  ▲ 6 under-replicated · 10 partitions × 3 replicas",
        row("3", "2·6", "4✕ 2● 5○", "2/3", "1,229,923", "+4", "◌"),
        row("9", "2·6", "4✕ 2● 5○", "2/3", "1,236,001", "+4", "◌"),
    ),
    "groups": (
        *FENCED_BROKER,
        row("▸ audit-export", "Empty 0/0", "≥198,310", "≥3 m 9 s"),
        row("billing", "Stable 3/3", "270"),
        row("fraud-check", "Stable 4/5", "60"),
    ),
    "group": (
        *FENCED_BROKER,
        r"audit-export  Empty 0/0",
        r"lag ≥198,310 +behind ≥3 m 9 s",
        row("audit-log", "0", "50,265", "≥3 m 9 s"),
        row("audit-log", "3", "≥47,515"),
    ),
    "help": (row("●", "a leader, or healthy"), r"ISR  replicas in sync: if the leader fails, one leads"),
    "commands": (row("open", "Enter"), row("crash", "K"), row("restore", "B")),
    "throughput-running": (
        r"^ Spark ● ",
        row("all topics", "9,123", "14,804"),
        row("in", "9,123", "7,771", "–"),
        row("hottest", "invoice-9"),
    ),
    "throughput-starting": (
        r"^ Spark ◌ ",
        row("all topics", "9,312", "14,495"),
        row("invoice", "5,256", "10,540"),
    ),
    "throughput-failed": (
        r"^ Spark ✕ .*SIGKILL",
        r"retrying in 7 s",
        row("all topics", "9,312", "14,495"),
        row("in", "6,560", "6,531", "–"),
    ),
    "throughput-off": (
        r"^ Spark ○ ",
        row("all topics", "9,312", "14,495"),
        row("invoice", "5,256", "10,540"),
    ),
    "throughput-incident": (
        r"^ Spark ● ",
        r"✕ 11 s without a leader",
        row("✕", "all topics", "9,043", "12,290"),
        row("in", "9,043", "8,365", "7,831"),
        row("hottest", "invoice-0"),
    ),
}
"""Patterns, each for one line, by the name of a state's golden file."""

OVERVIEW_LINES: dict[Size, dict[int, tuple[str, ...]]] = {
    (80, 24): {
        0: ("kview ▸",),
        2: ("─ BROKERS ─",),
        9: ("─ PARTITIONS ",),
        -5: ("GROUPS",),
        -4: ("─ EVENTS ─",),
        -1: ("? help", "q quit"),
    },
    (200, 50): {
        0: ("kview ▸",),
        2: ("╭─ RACK R1 ─", "╭─ RACK R2 ─"),
        8: ("╭─ THROUGHPUT ",),
        16: ("╭─ PARTITIONS ", "╭─ GROUPS "),
        17: ("audit-log",),
        39: ("╭─ EVENTS ─",),
        -1: ("? help", "q quit"),
    },
}
"""Texts that must be in a line of the overview, by its number."""


def missing(drawn: list[str], name: str) -> list[str]:
    """The patterns of a state that match no line."""
    return [pattern for pattern in CELLS[name] if not any(re.search(pattern, line) for line in drawn)]


def misplaced(drawn: list[str], size: Size) -> list[str]:
    """The texts that are not in their line of the overview."""
    return [
        f"{text!r} is not in line {number}"
        for number, texts in OVERVIEW_LINES[size].items()
        for text in texts
        if text not in drawn[number]
    ]
