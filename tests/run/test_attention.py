"""What the screen requests from a source reaches the current observer, or the next one."""

import asyncio
import threading

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from kview.derive.view import View
from kview.model.inspection import SettingsRequest
from kview.model.lab import Command, CommandKind
from kview.model.snapshot import Snapshot
from kview.observe.observer import ObserveSettings
from kview.run.observing import ConnectedSource, new_fold
from kview.run.simulated import SimulatedSource
from tests.observe.fake_broker import FakeBroker
from tests.waiting import wait_until


def connected(broker: FakeBroker) -> ConnectedSource:
    """Return a source that observes the broker five times a second."""
    return ConnectedSource([broker.address], 0.2)


def io_threads() -> int:
    """Return the number of threads with connections to brokers."""
    return sum(thread.name.startswith("kafka-io") for thread in threading.enumerate())


def test_connecting_again_closes_the_earlier_connection() -> None:
    with FakeBroker(0) as broker:
        source, before = connected(broker), io_threads()
        for _ in range(3):
            source.connect()
            assert source.observe().brokers.id.tolist() == [0]
        assert io_threads() == before + 1
        source.close()
        assert io_threads() == before


def states(view: View) -> dict[int, str]:
    """Return the states of the brokers by id."""
    table = view.snapshot.brokers
    return dict(zip(table.id.tolist(), map(str, table.state), strict=True))


def test_a_dismissed_broker_has_no_row_in_the_next_view_and_is_no_longer_counted() -> None:
    with FakeBroker(0) as leader, FakeBroker(1) as other:
        leader.advertised = other.advertised = {0: leader.address, 1: other.address}
        source, fold = connected(leader), new_fold()
        source.connect()

        def view_with(expected: dict[int, str]) -> View | None:
            view: View = fold(source.observe())
            return view if states(view) == expected else None

        try:
            wait_until(lambda: view_with({0: "up", 1: "up"}), "both are up")
            leader.advertised = {0: leader.address}
            other.close()
            wait_until(lambda: view_with({0: "up", 1: "gone"}), "broker 1 has left")
            source.dismiss(0)
            assert states(fold(source.observe())) == {0: "up", 1: "gone"}, "a listed broker stays"
            source.dismiss(1)
            view = fold(source.observe())
            assert states(view) == {0: "up"}
            assert len(view.brokers.leads) == 1
            assert not view.new_events, "the user has removed a row: nothing has happened"
            assert states(fold(source.observe())) == {0: "up"}, "it does not come back by itself"
        finally:
            source.close()


def test_before_and_after_a_connection_nothing_is_lost_and_nothing_raises() -> None:
    with FakeBroker(0) as leader:
        source = connected(leader)
        source.dismiss(3)
        source.prefer([("invoice", 0)])
        source.connect()
        try:
            assert source.observe().partitions.topic.tolist() == ["invoice"]
        finally:
            source.close()
        source.dismiss(3)
        source.prefer([])


def test_a_simulated_cluster_hears_it_too() -> None:
    source = SimulatedSource(["--brokers", "3", "--topic", "invoice:4:2"], 0.5)
    try:
        source.dismiss(0)
        source.prefer([("invoice", 3)])
        before = io_threads()
        source.connect()
        source.connect()
        assert io_threads() == before + 1, "the earlier connection is closed"
        assert asyncio.run(source.active()) == ()
        source.dismiss(0)
        assert source.observe().brokers.id.tolist() == [0, 1, 2], "none of them has left"
    finally:
        source.close()
    source.dismiss(0)


def test_a_changed_setting_is_read_at_once_where_kview_has_to_do_with_the_change() -> None:
    """Without that, the heading of the topic would have the old value for as long as a minute."""
    source = SimulatedSource(["--brokers", "3", "--topic", "invoice:4:3", "--no-traffic"], 0.2)

    def is_observed(value: int) -> bool:
        table = source.observe().partitions
        return set(table.min_isr[~table.internal].tolist()) == {value}

    soon_s = ObserveSettings().configs_s / 2
    try:
        source.connect()
        wait_until(lambda: is_observed(1), "the first value")
        of_lab = Command(CommandKind.SET, name="invoice", key="min.insync.replicas", value="2")
        assert asyncio.run(source.apply(of_lab)).refused is None
        wait_until(lambda: is_observed(2), "what the lab has set", soon_s)
        other = ConfigEntry("min.insync.replicas", "3", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "invoice", incremental_configs=[other])
        admin = AdminClient({"bootstrap.servers": servers_of(source.observe())})
        admin.incremental_alter_configs([resource])[resource].result(30)
        asyncio.run(source.ask(SettingsRequest("invoice")))
        wait_until(lambda: is_observed(3), "what its settings on the screen say", soon_s)
    finally:
        source.close()


def servers_of(snapshot: Snapshot) -> str:
    """Return the addresses of the brokers, as clients want them."""
    table = snapshot.brokers
    return ",".join(f"{host}:{port}" for host, port in zip(table.host, table.port, strict=True))
