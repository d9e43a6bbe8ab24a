"""What expressions of PromQL name, as far as kview's own rules and dashboard go."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kview.derive.brokers.controllers import ControllerState
from kview.derive.view import PartitionStatus, Verdict
from kview.model.events import Severity
from kview.model.findings import FindingKind
from kview.model.states import BrokerState, ConnectorState
from kview.plain.alert_rules import ALERTS
from kview.plain.grafana import dashboard
from tests.plain.scraped import Series

_SELECTOR = re.compile(r"(kview_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=|!=|=~|!~)\s*"([^"]*)"')
_BY = re.compile(r"\b(?:by|on|without)\s*\(([^)]*)\)")
_SHOWN = re.compile(r"\{\{\s*(?!else\b|end\b)(?:if )?(?:\$labels\.)?(\w+)")
OF_TARGETS = frozenset({"job", "instance", "cluster"})

WORDS: Mapping[str, frozenset[str]] = {
    "severity": frozenset(Severity),
    "kind": frozenset(FindingKind),
    "verdict": frozenset(Verdict),
    "status": frozenset(PartitionStatus),
    "internal": frozenset({"true", "false"}),
    "in_trouble": frozenset({"true", "false"}),
}
"""What labels may be, for those that expressions compare."""

STATES: Mapping[str, frozenset[str]] = {
    "kview_broker_state": frozenset(BrokerState),
    "kview_controller_state": frozenset(ControllerState),
    "kview_connector_state": frozenset(ConnectorState),
    "kview_connector_task_state": frozenset(ConnectorState),
}
"""What the label `state` of each metric may be."""


class Expression(NamedTuple):
    """An expression, and texts that show labels of its series."""

    where: str
    expr: str
    texts: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """The metrics that it names."""
        return {found[1] for found in _SELECTOR.finditer(self.expr)}


def of_rules() -> Iterator[Expression]:
    for alerts in ALERTS.values():
        for alert in alerts:
            yield Expression(alert.name, alert.expr, (alert.summary, alert.description))


def of_dashboard() -> Iterator[Expression]:
    made: dict[str, Any] = dashboard()
    for panel in made["panels"]:
        for target in panel.get("targets", ()):
            yield Expression(panel["title"], target["expr"], (target["legendFormat"],))


def faults(expression: Expression, labels: Mapping[str, set[str]]) -> Iterator[str]:
    """What an expression names that is not there. `labels` has the labels of each metric."""
    there: set[str] = set()
    for name, matchers in _SELECTOR.findall(expression.expr):
        if name not in labels:
            yield f"{expression.where}: no metric {name}"
            continue
        there |= labels[name]
        for label, operator, value in _MATCHER.findall(matchers):
            if label in OF_TARGETS:
                continue
            if label not in labels[name]:
                yield f"{expression.where}: {name} has no label {label}"
                continue
            words = STATES.get(name, ()) if label == "state" else WORDS.get(label, ())
            for word in value.split("|") if "~" in operator else [value]:
                if word not in words:
                    yield f"{expression.where}: {label} is never {word}"
    shown = {label for text in expression.texts for label in _SHOWN.findall(text)}
    grouped = {label.strip() for listed in _BY.findall(expression.expr) for label in listed.split(",")}
    for label in (shown | grouped) - there - OF_TARGETS:
        yield f"{expression.where}: no series has a label {label}"


def labels_of(*pages: Series) -> dict[str, set[str]]:
    """The labels of each metric."""
    found: dict[str, set[str]] = {}
    for page in pages:
        for name, labels in page:
            found.setdefault(name, set()).update(label for label, _ in labels)
    return found
