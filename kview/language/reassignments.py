"""Reassignments as words: from where to where, what is left to copy, and how long that takes."""

from kview.derive.brokers.throttles import NO_LIMIT, throttle_of
from kview.derive.partitions.reassignments import Move, move_of
from kview.derive.view import View
from kview.language import glyphs, words
from kview.model.units import UNKNOWN


def note(view: View, row: int) -> str:
    """Return a partition's reassignment in short, '' if it is not moved.

    Example: `reassigning: 0 → 0 1 2, 1.2 M records left, ≈ 4 m 10 s`.
    """
    if not view.moves.moving[row]:
        return ""
    parts = [_route(_move(view, row)), *_left(view, row), *_throttle(view, row)]
    return f"reassigning: {', '.join(parts)}"


def sentence(view: View, row: int) -> str:
    """Return the same with bytes, '' if the partition is not moved."""
    if not view.moves.moving[row]:
        return ""
    move = _move(view, row)
    gone = [broker for broker in move.before if broker not in move.after]
    new = [broker for broker in move.after if broker not in move.before]
    changes = [f"adds {_ids(new)}"] * bool(new) + [f"removes {_ids(gone)}"] * bool(gone)
    size = int(view.moves.bytes_left[row])
    left = _left(view, row)
    if left and size != UNKNOWN:
        left[0] += f" (≈ {words.size(size)})"
    said = f"reassigning {_route(move)}" + (f" ({', '.join(changes)})" if changes else "")
    throttle = _throttle(view, row) or ["throttle: –"] * (_limit(view, row) == UNKNOWN)
    parts = [*left, *throttle]
    return f"{said}: {', '.join(parts)}" if parts else said


def counted(added: int, removed: int) -> str:
    """Return how many replicas are being added and removed, '' if none is."""
    parts = [f"{glyphs.ADDED} {added:,} being added"] * bool(added)
    parts += [f"{glyphs.REMOVED} {removed:,} being removed"] * bool(removed)
    return ", ".join(parts)


def _move(view: View, row: int) -> Move:
    return move_of(view.snapshot.partitions, view.partitions, row)


def _route(move: Move) -> str:
    return f"{_ids(move.before)} → {_ids(move.after)}"


def _ids(brokers: list[int] | tuple[int, ...]) -> str:
    return " ".join(map(str, brokers)) or words.NONE


def _throttle(view: View, row: int) -> list[str]:
    """Return the rate that limits the move, nothing if nothing limits it or if that is not known."""
    limit = _limit(view, row)
    return [] if limit in (UNKNOWN, NO_LIMIT) else [f"throttled to {words.size(limit)}/s a broker"]


def _limit(view: View, row: int) -> int:
    return throttle_of(view.snapshot, view.partitions, row)


def _left(view: View, row: int) -> list[str]:
    """Return what the new replicas have to copy and how long that takes, nothing if there is no new one."""
    if not view.partitions.being_added[row].any():
        return []
    records, time_ms = int(view.moves.records_left[row]), int(view.moves.time_left_ms[row])
    if records == UNKNOWN:
        return ["records left: –"]
    amount = words.at_least(words.si(records), bool(view.moves.records_left_is_bound[row]))
    left = [f"{amount} record{'' if records == 1 else 's'} left"]
    return [*left, f"≈ {words.duration(time_ms, tenths=False)}"] if records and time_ms >= 0 else left
