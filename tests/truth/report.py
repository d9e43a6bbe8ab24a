"""The result of a run as a table: in how many seconds something differed, by kind, with examples."""

from collections.abc import Sequence

from tests.truth.frames import Frame
from tests.truth.judge import Difference, Kind
from tests.truth.log import Deed

EXAMPLES = 4
"""Longer runs of one difference first."""


def share(frames: Sequence[Frame], found: Sequence[Difference]) -> float:
    """Return the share of seconds in which anything differed."""
    return len({one.at_ms for one in found}) / len(frames) if frames else 0.0


def table(name: str, frames: Sequence[Frame], found: Sequence[Difference], deeds: Sequence[Deed]) -> str:
    """Return the differences as lines of text. Times are seconds since the first frame."""
    began_ms = frames[0].at_ms if frames else 0
    wrong = len({one.at_ms for one in found})
    lines = [f"{name}: {wrong} of {len(frames)} seconds differ from the truth ({share(frames, found):.1%})"]
    done = (f"{(deed.at_ms - began_ms) / 1000:.0f} {deed.do} {deed.group or deed.node}" for deed in deeds)
    lines.append(f"  done: {' · '.join(done)}")
    for kind in Kind:
        of_kind = [one for one in found if one.kind is kind]
        if not of_kind:
            continue
        lines.append(f"  {len({one.at_ms for one in of_kind}):4} s  {kind}")
        for (subject, shown, true), times in _examples(of_kind)[:EXAMPLES]:
            seconds = f"{(times[0] - began_ms) / 1000:.0f} … {(times[-1] - began_ms) / 1000:.0f}"
            lines.append(f"          {len(times)} × at {seconds}: {subject}: {shown} · true: {true}")
    return "\n".join(lines)


def _examples(found: Sequence[Difference]) -> list[tuple[tuple[str, str, str], list[int]]]:
    """Return the seconds of every distinct claim, the most frequent first."""
    times: dict[tuple[str, str, str], list[int]] = {}
    for one in found:
        shown, true = (_without_numbers(text) for text in (one.shown, one.true))
        times.setdefault((one.subject, shown, true), []).append(one.at_ms)
    return sorted(times.items(), key=lambda item: -len(item[1]))


def _without_numbers(text: str) -> str:
    """Return a text with every number as #, so that a claim whose figure changes is one claim."""
    digits = "".join("#" if character.isdigit() else character for character in text)
    while "##" in digits or "#,#" in digits or "#.#" in digits:
        digits = digits.replace("##", "#").replace("#,#", "#").replace("#.#", "#")
    return digits
