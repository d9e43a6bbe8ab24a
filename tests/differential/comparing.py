"""What was seen on the real cluster, as it is kept, and how two runs of a script differ."""

import json
from collections.abc import Container, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from tests.real_kafka.jars import KAFKA_VERSION

RECORDED = Path(__file__).parent / "recorded" / f"kafka-{KAFKA_VERSION}"

Seen = Mapping[str, list[str]]
"""Subject → words for its states, in order."""


class Difference(NamedTuple):
    """States of a subject in which the simulated cluster (`simulated`) differs from the real one (`real`)."""

    subject: str
    real: tuple[str, ...]
    simulated: tuple[str, ...]


def recorded(script: str) -> Seen:
    """Return what was seen on the real cluster."""
    kept: dict[str, list[str]] = json.loads((RECORDED / f"{script}.json").read_text())
    return kept


def record(script: str, seen: Seen) -> None:
    """Keep what was seen on the real cluster."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    text = json.dumps(seen, indent=1, ensure_ascii=False)
    (RECORDED / f"{script}.json").write_text(f"{text}\n")


def differences(real: Seen, simulated: Seen, fleeting: Container[str] = ()) -> list[Difference]:
    """Return the states that differ, subject by subject.

    The states of a subject in `fleeting` may be too short for whoever looks every few milliseconds, or come
    and go because a machine stalls. So a state that only one side has seen does not count, as long as both
    end in the same one.
    """
    found = []
    for subject in dict.fromkeys([*real, *simulated]):
        left, right = real.get(subject, []), simulated.get(subject, [])
        tolerant = subject in fleeting and left[-1:] == right[-1:]
        matcher = SequenceMatcher(a=left, b=right, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == "equal" or (kind != "replace" and tolerant):
                continue
            found.append(Difference(subject, tuple(left[a:b]), tuple(right[c:d])))
    return found
