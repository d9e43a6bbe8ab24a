"""Alert rules: what they name is in kview's metrics, they fire in trouble, and are silent in calm."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kview.model.snapshot import Snapshot
from kview.plain.alert_rules import ALERTS
from kview.plain.grafana import dashboard
from kview.plain.own_series import Limits
from tests.plain.expositions import calm_world, crashed, pages, series
from tests.plain.promql import Expression, faults, labels_of, of_dashboard, of_rules
from tests.plain.promtool import SCRAPE_S, TARGET, check, lasting, numbers, promtool, scenario
from tests.plain.scraped import Series
from tests.worlds import default_world, views
from tests.worlds.reassignments import Moving

__all__ = ("promtool",)

MINUTE_S = 60
LONGEST_S = 12 * MINUTE_S
"""Longer than any rule waits."""


FEW = Limits(topics=1, partitions=1, groups=1, group_partitions=1)


def everything() -> list[Series]:
    """Pages that have all metrics that rules or the dashboard may name."""
    scene, world = Moving(), calm_world()
    *_, later = views(world.tick() for _ in range(15))
    return [
        *(page for page, _ in pages().values()),
        series(later),
        series(later, FEW),
        series(scene.copy(2, 1_000)),
        series(crashed(4, seconds=4), FEW),
    ]


def test_what_rules_and_dashboard_name_is_in_the_metrics() -> None:
    labels = labels_of(*everything())
    expressions = [*of_rules(), *of_dashboard()]
    assert len(expressions) > 80
    assert [fault for each in expressions for fault in faults(each, labels)] == []


@pytest.mark.parametrize(
    ("expr", "fault"),
    [
        ("kview_brokerz > 1", "no metric kview_brokerz"),
        ('kview_groups{group="a"}', "kview_groups has no label group"),
        ('kview_broker_state{state=~"silent|sleepy"}', "state is never sleepy"),
        ('kview_broker_state{state="FAILED"}', "state is never FAILED"),
        ("sum by (rack) (kview_broker_state)", "no series has a label rack"),
    ],
)
def test_what_is_not_in_the_metrics_is_found(expr: str, fault: str) -> None:
    labels = {"kview_groups": set(), "kview_broker_state": {"broker", "state"}}
    assert [*faults(Expression("x", expr, ("{{ $labels.instance }}",)), labels)] == [f"x: {fault}"]


def test_a_sum_of_nothing_known_is_not_0() -> None:
    """A number is 0 only where kview sees the cluster."""
    exprs = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    assert not [expr for expr in exprs if expr.endswith("or vector(0)")]


def test_the_dashboard_has_no_panel_twice_or_over_another() -> None:
    panels = dashboard()["panels"]
    assert [panel["id"] for panel in panels] == [*range(1, len(panels) + 1)]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    rows = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert rows[:5] == ["Overview", "Brokers", "Topics", "Partitions", "Groups"]


@pytest.mark.slow
def test_each_panel_has_something_to_show_and_the_rest_adds_up(promtool: str, tmp_path: Path) -> None:
    one = {key: found for page in everything() for key, found in page.items()}
    texts = [each.expr.replace("$__rate_interval", "1m") for each in of_dashboard()]
    texts = [
        text.replace('"$instance"', f'"{TARGET["instance"]}"').replace('"$name"', '""') for text in texts
    ]
    shown = {f"(count({text}) > bool 0) or vector(0)": 1.0 for text in texts}
    world = default_world()
    *_, later = views(world.tick() for _ in range(15))
    names = ("lag_min_records", "read_records_per_second", "members")
    total = {
        f"sum(kview_group_{name}) + sum(kview_rest_groups_{name})": sum(
            found for (each, _), found in series(later).items() if each == f"kview_group_{name}"
        )
        for name in names
    }
    scenarios = [numbers("dashboard", one, shown), numbers("rest", series(later, FEW), total)]
    check(promtool, tmp_path, scenarios)


def of_kview(page: Series) -> Series:
    """What is served of a page that is too old."""
    kept = (
        "kview_build",
        "kview_observation",
        "kview_requests",
        "kview_sent",
        "kview_received",
        "kview_failed",
    )
    return {key: value for key, value in page.items() if key[0].startswith(kept)}


CRASH_S = 2 * MINUTE_S
FENCED_S = CRASH_S + 15
"""The first scrape after the broker's session has ended."""


def crash() -> list[Series]:
    """Two calm minutes, then broker 4 crashes for good: a scrape every 15 s."""
    world, scrapes = calm_world(), []
    world.interval_ms = 5_000

    def snapshots() -> Iterator[Snapshot]:
        for second in range(0, CRASH_S + LONGEST_S, 5):
            if second == CRASH_S:
                world.crash(4)
            yield world.tick()

    for number, view in enumerate(views(snapshots())):
        if number % (SCRAPE_S // 5) == 0:
            scrapes.append(series(view))
    return scrapes


@pytest.mark.slow
def test_promtool_reads_the_rules_and_they_fire_as_they_should(promtool: str, tmp_path: Path) -> None:
    kinds = pages()
    calm = kinds["nothing"][0]
    partitions_2 = series(crashed(4, seconds=4), Limits(partitions=2))
    offline = {"KafkaPartitionsOffline"}
    down = offline | {"KafkaBrokerDown"}
    scenarios = [
        *(
            scenario(name, lasting(page, LONGEST_S), {LONGEST_S: alerts})
            for name, (page, alerts) in kinds.items()
        ),
        scenario("kview is gone", [*lasting(calm, 60), *lasting({}, 300)], {60: set(), 300: {"KviewGone"}}),
        {
            **(one_gone := scenario("one of two kviews is gone", lasting(calm, 300), {300: {"KviewGone"}})),
            "input_series": [
                *one_gone["input_series"],
                *(
                    {"series": f'{name}{{instance="other:9309", job="kview"}}', "values": "1 1 1 1 1 stale"}
                    for name in ("kview_build_info", "kview_brokers")
                ),
            ],
        },
        scenario(
            "kview cannot observe",
            [*lasting(calm, 60), *lasting(of_kview(calm), 300)],
            {60: set(), 105: set(), 180: {"KviewNotObserving"}},
        ),
        scenario(
            "a crash",
            crash(),
            {
                CRASH_S + 15: set(),
                CRASH_S + 60: offline,
                FENCED_S + 105: offline,
                FENCED_S + 150: down,
                FENCED_S + 585: down,
                CRASH_S + LONGEST_S - 15: down | {"KafkaPartitionsUnderReplicated"},
            },
        ),
        scenario(
            "two brokers are down",
            lasting(series(crashed(3, 4, seconds=15)), LONGEST_S),
            {45: offline, 90: offline | {"KafkaPartitionsUnderMinIsr"}},
        ),
        scenario(
            "no broker answers",
            lasting(series(crashed(*range(6), seconds=4)), LONGEST_S),
            {15: set(), LONGEST_S: {"KafkaBrokerSilent", "KafkaNoBrokerAnswers"}},
        ),
        scenario(
            "a broker stays silent, and there is no room for all series",
            lasting(partitions_2, LONGEST_S),
            {
                15: set(),
                30: {"KafkaBrokerSilent"},
                LONGEST_S: {
                    "KafkaBrokerSilent",
                    "KafkaPartitionsFrozen",
                    "KafkaGroupBlocked",
                    "KviewOmitsTrouble",
                },
            },
        ),
    ]
    tried = {
        sample["labels"].split('"')[1]
        for each in scenarios
        for expected in each["promql_expr_test"]
        for sample in expected["exp_samples"]
    }
    assert tried == {alert.name for alerts in ALERTS.values() for alert in alerts}
    check(promtool, tmp_path, scenarios)
