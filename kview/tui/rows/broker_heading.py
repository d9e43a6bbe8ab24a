"""What a broker's screen says first: what it is doing, where it is, and what it holds."""

from kview.derive.brokers.controllers import quorum_nodes
from kview.derive.brokers.replicas import broker_row
from kview.derive.brokers.silence import other_apis
from kview.derive.view import View
from kview.language import brokers, failures, glyphs, words
from kview.language import controllers as controller_words
from kview.model.address import Address
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.tui.rows.common import broker_state
from kview.tui.text import Line, Role, Span, joined, line

LINES = 4
"""The number of lines of the heading."""

METADATA_VERSION = "metadata.version"
"""The feature that says how far an upgrade has come: the first to be named."""


def broker_heading(view: View, broker: int, now_ms: int, cells: int) -> list[Line]:
    """Return LINES lines about a broker. Of the facts, as many are shown as fit into `cells`."""
    at = broker_row(view, broker)
    if at is None:
        return [line(Span(f"broker {broker}", Role.BRIGHT), Span(" is no longer listed", Role.WARN))]
    table, figures = view.snapshot.brokers, view.brokers
    why = [
        brokers.fencing(figures, at, now_ms),
        failures.of_broker(table.error[at], bool(figures.unreached[at])),
    ]
    first = line(
        Span(f"broker {broker}", Role.BRIGHT),
        "  ",
        *broker_state(view, at, now_ms),
        Span("".join(f" {glyphs.DOT} {text}" for text in why if text), Role.DIM),
    )
    return [
        first,
        *(_facts(facts, cells) for facts in (_place(view, at), _load(view, at), _timing(view, at, now_ms))),
    ]


def _facts(facts: list[tuple[str, str]], cells: int) -> Line:
    """Return as many names and figures as fit into `cells`, the names dim."""
    parts = [line(Span(f"{name} " if name else "", Role.DIM), Span(figure)) for name, figure in facts]
    return (Span("  "), *joined(parts, Span("   "), cells - 2))


def _place(view: View, at: int) -> list[tuple[str, str]]:
    table = view.snapshot.brokers
    facts = [
        ("rack", str(table.rack[at]) or words.NONE),
        ("listener", str(Address(table.host[at], int(table.port[at])))),
        ("disk", words.size(int(table.disk_bytes[at]))),
    ]
    facts += [("quorum", text)] if (text := _controller(view, at)) else []
    facts += [("", "offers other APIs than the rest")] if other_apis(view.snapshot)[at] else []
    features = view.snapshot.features
    levels = zip(features.name.tolist(), map(str, features.level.tolist()), strict=True)
    return [*facts, *sorted(levels, key=lambda pair: pair[0] != METADATA_VERSION)]


def _controller(view: View, at: int) -> str:
    """Return what the broker is in the quorum, '' if that is not known."""
    broker = int(view.snapshot.brokers.id[at])
    mine = [controller for controller in quorum_nodes(view) if controller.node == broker]
    if mine:
        return controller_words.with_lag(mine[0])
    return "active controller" if view.brokers.is_controller[at] else ""


def _load(view: View, at: int) -> list[tuple[str, str]]:
    figures = view.brokers
    return [
        ("leads", words.count(int(figures.leads[at]))),
        ("replicas", words.count(int(figures.replicas[at]))),
        ("in", f"{words.rate_at(figures.in_rate, figures.in_is_bound, at)} rec/s"),
        ("out", f"{words.rate_at(figures.out_rate, figures.out_is_bound, at)} rec/s"),
    ]


def _timing(view: View, at: int, now_ms: int) -> list[tuple[str, str]]:
    table = view.snapshot.brokers
    is_up = table.state[at] == BrokerState.UP
    facts = [
        ("latency", words.latency(int(table.latency_us[at])) if is_up else words.NONE),
        ("last answer", _ago(int(table.answered_ms[at]), now_ms)),
    ]
    if table.last_fetch_ms[at] != UNKNOWN:
        facts.append(("last fetch of metadata", _ago(int(table.last_fetch_ms[at]), now_ms)))
    if table.session_timeout_ms[at] != UNKNOWN:
        timeout = words.duration(int(table.session_timeout_ms[at]), tenths=False)
        facts.append(("broker.session.timeout.ms", timeout))
    return facts


def _ago(at_ms: int, now_ms: int) -> str:
    return words.NONE if at_ms == UNKNOWN else f"{words.age(at_ms, now_ms)} ago"
