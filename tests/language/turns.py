"""Turns of phrase that nobody would say to a colleague, so kview says them nowhere."""

import re

BANNED = {
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|fewer\b|less\b)": "is not a …, has no …",
    r"\banew\b": "again",
    r"\bbeside (?:the|a|an|it|its|this|that|them|their)\b": "next to, besides, with",
    r"\b(?:is|are|was|were|be|been|being) told\b(?! (?:to|apart|from)\b)": "is reported, is shown; learns",
    r"\b(?:is|are|was|were|be|been|being) gone to\b": "step to, jump to",
    r"\bwho(?:ever|soever)\b": "anyone who, or name them",
    r"\b(?:there|here|where)(?:of|in|upon|with)\b(?! lies)": "of it, in it, with it",
    r"\baddress of numbers\b": "IP address",
    r"\bas by kill\b": "was killed (kill −9), was frozen",
    r"\bin what has been\b": "so far, yet",
    r"\bname of yours\b": "a name",
    r"\bhas the keys\b": "the focused panel",
    r"\bwhose name holds\b": "whose name contains",
    r"\b(?:watermark|watermarks) free again\b": "watermark moves again",
    r"\bled by another broker\b": "moved to broker …",
    r"\bbroker that is not there\b": "a silent broker",
    r"\btapes?\b": "recording, flight recording",
}
"""Turns, as regular expressions without regard to case, and what to say instead."""

NOT_ON_SCREEN = {r"\blook at the cluster\b": "observe", r"\bpictures?\b": "snapshot, screen"}
"""Further turns, fine in a docstring about Textual but not in a sentence that kview says."""


def banned_turns(sentence: str) -> list[str]:
    """The turns in a sentence that kview says."""
    return [turn for turn in BANNED | NOT_ON_SCREEN if re.search(turn, sentence, re.IGNORECASE)]
