"""A page of metrics as Prometheus reads it: parsed by its own client, and held to its naming rules."""

import re
from collections.abc import Iterator

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from kview.derive.view import View
from kview.plain.metrics import Costs, metrics
from kview.plain.own_series import LIMITS, Limits, OwnSeries

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

_NAME = re.compile(r"kview_[a-z]+(_[a-z]+)*")
_NOT_A_BASE_UNIT = re.compile(
    r"_(ms|millis|us|micros|milliseconds|microseconds|minutes|kb|mb|kilobytes|percent)\b"
)
_RESERVED = ("_count", "_sum", "_bucket", "_gauge", "_counter")


def page_of(view: View, limits: Limits = LIMITS, own: OwnSeries | None = None) -> str:
    """The page for a view. `own` remembers what the pages before had series of."""
    costs, chosen = Costs().plus(view), own or OwnSeries(limits=limits)

    class Page(Collector):
        def collect(self) -> Iterator[Metric]:
            return metrics(view, costs, "1.2.3", chosen)

    return generate_latest(Page()).decode()


def read(page: str) -> Series:
    """The series of a page by name and labels. Fails if one is there twice."""
    series: Series = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in series, f"twice: {key}"
            series[key] = sample.value
    return series


def value(series: Series, name: str, **labels: str) -> float | None:
    """The value of one series, None if there is none."""
    return series.get((name, tuple(sorted(labels.items()))))


def problems(page: str) -> list[str]:
    """What `promtool check metrics` would complain about, of kview's own metrics."""
    found = []
    for family in text_string_to_metric_families(page):
        if not family.name.startswith("kview_"):
            continue
        names = {sample.name for sample in family.samples}
        if not _NAME.fullmatch(family.name):
            found.append(f"{family.name}: not a plain name")
        if not family.documentation.endswith("."):
            found.append(f"{family.name}: no help")
        if family.type not in ("gauge", "counter"):
            found.append(f"{family.name}: type {family.type}")
        if family.type == "counter" and names - {f"{family.name}_total"}:
            found.append(f"{family.name}: a counter without _total")
        if family.type == "gauge" and any(name.endswith("_total") for name in names):
            found.append(f"{family.name}: a gauge with _total")
        if _NOT_A_BASE_UNIT.search(family.name) or family.name.endswith(_RESERVED):
            found.append(f"{family.name}: unit or suffix")
    return found
