"""Client quotas on demand: those that Kafka's own tool has set, and why there is no answer."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasResponse

from kview.language.inspection import failure
from kview.model.inspection import InspectionFailureKind, Quota, QuotasAnswer, QuotasRequest
from kview.observe.observer import ObserveSettings
from tests.observe.asking import answered
from tests.observe.fake_broker import VERSIONS, FakeBroker
from tests.observe.observing import observing
from tests.real_kafka.asking import ask
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.tools import CONFIGS, Tools
from tests.waiting import wait_until

SETTINGS = ObserveSettings(interval_s=0.5)
QUOTAS = 48
Entity = tuple[tuple[str, str | None], ...]


def set_quotas(kafka: RealKafka, entity: Entity, limits: Mapping[str, float], remove: bool = False) -> None:
    """Set or remove the quotas of an entity, as kafka-configs does."""
    data = AlterClientQuotasRequest.EntryData
    entry = data(
        entity=[data.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[data.OpData(key=key, value=value, remove=remove) for key, value in limits.items()],
    )
    answer = ask(kafka.address(0), AlterClientQuotasRequest(version=1, entries=[entry], validate_only=False))
    assert [one.error_code for one in answer.entries] == [0], answer


def told_by_kafka(runtime: tuple[Path, Path], kafka: RealKafka, client_id: str) -> str:
    """What kafka-configs prints about a client id."""
    which = ("--entity-type", "clients", "--entity-name", client_id)
    return Tools(runtime, kafka.bootstrap_servers).run(CONFIGS, "--describe", *which)


def test_quotas_are_those_that_were_set(real_kafka: RealKafka, kafka_runtime: tuple[Path, Path]) -> None:
    name = f"app-{uuid.uuid4().hex[:8]}"
    wanted: dict[Entity, dict[str, float]] = {
        (("client-id", name),): {"consumer_byte_rate": 1_048_576.0, "request_percentage": 12.5},
        (("client-id", name), ("user", None)): {"producer_byte_rate": 1_024.0},
        (("user", name),): {"controller_mutation_rate": 2.5},
        (("ip", "127.0.0.77"),): {"connection_creation_rate": 10.0},
    }
    for entity, limits in wanted.items():
        set_quotas(real_kafka, entity, limits)
    try:
        with observing([real_kafka.address(id) for id in real_kafka.broker_ids], SETTINGS) as observer:
            observer.observe()
            answer: QuotasAnswer = answered(observer, QuotasRequest())

            def has_all() -> bool:
                nonlocal answer
                answer = answered(observer, QuotasRequest())
                return {quota.entity for quota in answer.quotas} >= set(wanted)

            wait_until(has_all, "the broker asked knows all of them")
        assert not answer.failure and answer.cost.requests >= 1
        mine = {quota.entity: dict(quota.limits) for quota in answer.quotas if quota.entity in wanted}
        assert mine == wanted
        limits_of_client = ", ".join(f"{key}={value}" for key, value in mine[("client-id", name),].items())
        said = told_by_kafka(kafka_runtime, real_kafka, name)
        assert said.strip() == f"Quota configs for client-id '{name}' are {limits_of_client}"
    finally:
        for entity, limits in wanted.items():
            set_quotas(real_kafka, entity, limits, remove=True)


class Refusing(FakeBroker):
    """A broker that answers a question for quotas with an error, or with one quota."""

    def __init__(self, error: int) -> None:
        self._error = error
        super().__init__(versions={**VERSIONS, QUOTAS: (0, 1)})

    def _answer(self, key: int, version: int, frame: bytes) -> tuple[bytes, bool]:
        if key != QUOTAS:
            return super()._answer(key, version, frame)
        entry = DescribeClientQuotasResponse.EntryData
        entries: list[Any] = [
            entry(
                version=version,
                entity=[entry.EntityData(version=version, entity_type="user", entity_name=None)],
                values=[entry.ValueData(version=version, key="producer_byte_rate", value=1.5)],
            )
        ]
        answer = DescribeClientQuotasResponse(
            version=version,
            throttle_time_ms=0,
            error_code=self._error,
            error_message=None,
            entries=None if self._error else entries,
        )
        return bytes(answer.encode()), version > 0


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (
            31,
            InspectionFailureKind.NOT_AUTHORIZED,
            "kview is not authorized to read quotas: it needs DescribeConfigs on the cluster"
            " (CLUSTER_AUTHORIZATION_FAILED)",
        ),
        (41, InspectionFailureKind.NO_ANSWER, "broker 0 answered NOT_CONTROLLER"),
        (0, InspectionFailureKind.NONE, ""),
    ],
)
def test_an_error_is_said_and_never_none(error: int, kind: InspectionFailureKind, said: str) -> None:
    broker = Refusing(error)
    try:
        with observing([broker.address], SETTINGS) as observer:
            observer.observe()
            answer: QuotasAnswer = answered(observer, QuotasRequest())
    finally:
        broker.close()
    assert answer.failure.kind is kind and failure(answer.failure, answer) == said
    one = Quota((("user", None),), (("producer_byte_rate", 1.5),))
    assert answer.quotas == (() if error else (one,))


def test_a_broker_that_does_not_know_quotas_says_so() -> None:
    broker = FakeBroker()
    try:
        with observing([broker.address], SETTINGS) as observer:
            observer.observe()
            answer: QuotasAnswer = answered(observer, QuotasRequest())
    finally:
        broker.close()
    assert answer.failure.kind is InspectionFailureKind.UNSUPPORTED
    assert failure(answer.failure, answer) == "broker 0 cannot tell quotas: brokers from Kafka 2.6 on can"
