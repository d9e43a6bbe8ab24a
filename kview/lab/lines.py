"""The commands that people type on standard input. Each line is answered with one line, `ok …` or `error
…`."""

from collections.abc import Callable, Iterator

import msgspec

from kview.errors import BadUse, ErrorKind
from kview.lab.adjusting import adjustment_of, is_adjustment
from kview.lab.commands import parse
from kview.lab.console import Console
from kview.language import adjustments, faults
from kview.language.errors import sentence

MAX_LINE_BYTES = 4096
"""The longest command takes about twenty bytes. A line longer than this is not carried out."""


def lines_of(read: Callable[[], bytes]) -> Iterator[str | None]:
    """Yield the lines in the bytes that `read` returns, until it returns none.

    A line that is too long is yielded as None. Blank lines are left out.
    """
    unread = b""
    while chunk := read():
        *lines, unread = (unread + chunk).split(b"\n")
        # one byte above the limit is enough to see that the line is too long
        unread = unread[: MAX_LINE_BYTES + 1]
        yield from map(_line, filter(bytes.strip, lines))
    if unread.strip():
        yield _line(unread)


def _line(line: bytes) -> str | None:
    return line.decode(errors="replace") if len(line) <= MAX_LINE_BYTES else None


def answer(console: Console, line: str | None) -> str:
    """Carry out one line from `lines_of`. Returns what was done and how to undo it, or what was wrong."""
    if line is None:
        return f"error {sentence(BadUse(ErrorKind.LINE_TOO_LONG, most_bytes=MAX_LINE_BYTES))}"
    match line.strip():
        case "status":
            return f"ok {faults.status(console.status())}"
        case "counters":
            return f"ok {msgspec.json.encode(console.counters().counters, order='sorted').decode()}"
        case "quit":
            console.quit()
            return "ok the cluster ends"
    try:
        if is_adjustment(line):
            wanted = adjustment_of(line)
            reply = console.adjust(wanted)
            if reply.refused is not None:
                return f"error {sentence(reply.refused)}"
            back = reply.undone_by
            undo = f"; to undo it: {adjustments.typed(back)}" if back is not None else ""
            return f"ok {adjustments.done(wanted)}{undo}"
        command = parse(line)
    except BadUse as error:
        return f"error {sentence(error)}"
    outcome = console.apply(command)
    if outcome.done is None:
        assert outcome.refused is not None
        return f"error {faults.refusal(outcome.refused, outcome.undone_by, faults.typed)}"
    undo = f"; to undo it: {faults.typed(outcome.undone_by)}" if outcome.undone_by is not None else ""
    return f"ok {faults.done(outcome.done)}{undo}"
