"""The commands that people type on standard input. Each line is answered with one line, `ok …` or `error
…`."""

from collections.abc import Callable, Iterator

import msgspec

from kview.errors import BadUse, ErrorKind
from kview.lab.commands import parse, typed
from kview.lab.console import Console
from kview.language import commands
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
            return f"ok {commands.status(console.status())}"
        case "counters":
            return f"ok {msgspec.json.encode(console.counters().counters, order='sorted').decode()}"
        case "quit":
            console.quit()
            return "ok the cluster ends"
    try:
        reply = console.apply(parse(line))
    except BadUse as error:
        return f"error {sentence(error)}"
    if reply.done is None:
        assert reply.refused is not None
        return f"error {commands.refusal(reply.refused, reply.undone_by, typed)}"
    undo = f"; to undo it: {typed(reply.undone_by)}" if reply.undone_by is not None else ""
    return f"ok {commands.done(reply.done)}{undo}"
