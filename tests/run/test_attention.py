"""What the screen requests from a source reaches the current observer, or the next one."""

from kview.derive.view import View
from kview.run.connected import ConnectedSource
from kview.run.folding import new_fold
from kview.run.simulated import SimulatedSource
from tests.observe.fake_broker import FakeBroker
from tests.waiting import wait_until


def connected(broker: FakeBroker) -> ConnectedSource:
    """Return a source that observes the broker five times a second."""
    return ConnectedSource([broker.address], 0.2)


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
        source.connect()
        source.dismiss(0)
        assert source.observe().brokers.id.tolist() == [0, 1, 2], "none of them has left"
    finally:
        source.close()
    source.dismiss(0)
