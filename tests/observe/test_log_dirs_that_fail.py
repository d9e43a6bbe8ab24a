"""A log directory that fails on a real cluster while its broker runs."""

from kview.derive.checks.judge import Watch, step
from kview.derive.view import View
from kview.language import checks
from kview.model.checks import CheckKind, Judgement
from kview.model.failures import STORAGE_ERROR
from kview.model.findings import Finding, FindingKind
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from tests.conftest import ClusterFactory
from tests.observe.observing import Watched, broker_state, observing
from tests.real_kafka.log_dirs import TWO_DIRS, can_fail, lose, repair

SETTINGS = ObserveSettings(interval_s=0.5)


def about(view: View) -> list[Finding]:
    return [one for one in view.headline.findings if one.kind is FindingKind.LOG_DIR_OFFLINE]


def test_a_directory_that_fails_is_named_at_once_and_nobody_is_told_to_start_its_broker(
    real_kafka_factory: ClusterFactory,
) -> None:
    kafka = real_kafka_factory(brokers=2, overrides=TWO_DIRS)
    kafka.create_topic("solo", [[0]] * 4)
    kafka.create_topic("duo", [[0, 1]] * 2 + [[1, 0]] * 2, {"min.insync.replicas": "1"})
    more = can_fail(kafka.nodes[0])
    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched, watch = Watched(observer), Watch()
        view = watched.until(
            lambda view: len(view.snapshot.log_dirs) == 4 and len(view.snapshot.partitions) >= 8,
            "both brokers have told their directories",
        )
        assert bool((view.snapshot.log_dirs.usable_bytes > 0).all()) and not about(view)
        held = len(list(more.glob("solo-*")))
        lose(kafka.nodes[0])

        found: list[Judgement] = []

        def is_told(view: View) -> bool:
            nonlocal watch
            watch, judgement = step(watch, view)
            found.append(judgement)
            return bool(about(view)) and bool((view.snapshot.partitions.offline >= 0).any())

        view = watched.until(is_told, "the failed directory is named", 10.0)

        repair(kafka.nodes[0])
        kafka.stop(0)
        watched.until(lambda view: broker_state(view, 0) != BrokerState.UP, "the broker is down")
        watched.views.clear()
        kafka.restart(0)
        watched.until(
            lambda view: (
                not (
                    about(view)
                    or (view.snapshot.partitions.offline >= 0).any()
                    or (view.snapshot.brokers.state != BrokerState.UP).any()
                )
            ),
            "the directory is used again after a restart of the broker",
            60.0,
        )
        assert not any(about(view) for view in watched.views), "what it told before it was restarted"
    (finding,), table = about(view), view.snapshot.log_dirs
    assert (finding.brokers, finding.paths, finding.severity) == ((0,), (str(more),), "risk")
    assert finding.count == held >= 1 and finding.partitions > held
    rows = table.path == str(more)
    assert table.error_code[rows].tolist() == [STORAGE_ERROR] and table.usable_bytes[rows].tolist() == [
        UNKNOWN
    ]
    assert {str(state) for state in view.snapshot.brokers.state} == {"up"}
    said = [checks.sentence(one, 0) for judgement in found for one in judgement.findings]
    assert not [one for one in said if "tart broker" in one]
    (cause,) = [one for one in found[-1].findings if one.kind is CheckKind.LOG_DIR_OFFLINE]
    offline = [
        one for one in found[-1].findings if one.kind in (CheckKind.OFFLINE, CheckKind.UNDER_REPLICATED)
    ]
    assert offline and {one.explained_by for one in offline} == {(cause.key,)}
