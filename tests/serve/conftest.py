"""A fixture for tests that are about the simulated and the real cluster."""

from collections.abc import Iterator, Mapping, Sequence

import pytest

from tests.real_kafka.asking import create_topic
from tests.real_kafka.cluster import RealKafka
from tests.serve.both import Cluster
from tests.served import Served
from tests.waiting import wait_until


@pytest.fixture(
    scope="module",
    params=["simulated", pytest.param("real", marks=pytest.mark.real_cluster)],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Each of the two clusters."""
    yield from _each(request, "shared_kafka", "--brokers", "3")


@pytest.fixture(
    scope="module",
    params=[
        "simulated",
        pytest.param("real", marks=pytest.mark.real_cluster(fixture="shared_kafka_3")),
    ],
)
def cluster_3_9(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Each of two clusters of Kafka 3.9, with two brokers."""
    yield from _each(request, "shared_kafka_3", "--brokers", "2", "--release", "3.9")


def _each(request: pytest.FixtureRequest, real: str, *flags: str) -> Iterator[Cluster]:
    if request.param == "real":
        kafka: RealKafka = request.getfixturevalue(real)
        kafka.heal()
        yield Cluster(kafka.bootstrap_servers, kafka.address, kafka.create_topic)
        return
    with Served("--no-traffic", "--racks", "1", *flags) as served:

        def make(name: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str]) -> None:
            why = create_topic(served.addresses[0], name, assignment, configs)
            assert not why, why
            brokers = {broker for replicas in assignment for broker in replicas}
            wait_until(
                lambda: all(not served.metadata(name, broker).error_code for broker in brokers), "known"
            )

        yield Cluster(served.bootstrap, lambda broker: served.addresses[broker], make)
