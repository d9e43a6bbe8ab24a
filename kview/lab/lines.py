"""The commands that people type on standard input. Each line is answered with one line, `ok …` or `error
…`."""

import msgspec

from kview.errors import BadUse
from kview.lab.commands import parse
from kview.lab.console import Console
from kview.language import faults
from kview.language.errors import sentence


def answer(console: Console, line: str) -> str:
    """Carry out a line. Returns what was done and how to undo it, or what was wrong."""
    match line.strip():
        case "status":
            return f"ok {faults.status(console.status())}"
        case "counters":
            return f"ok {msgspec.json.encode(console.counters().counters, order='sorted').decode()}"
        case "quit":
            console.quit()
            return "ok the cluster ends"
    try:
        command = parse(line)
    except BadUse as error:
        return f"error {sentence(error)}"
    reply = console.apply(command)
    if reply.done is None:
        assert reply.refused is not None
        return f"error {faults.refusal(reply.refused, reply.undone_by, faults.typed)}"
    undo = f"; to undo it: {faults.typed(reply.undone_by)}" if reply.undone_by is not None else ""
    return f"ok {faults.done(reply.done)}{undo}"
