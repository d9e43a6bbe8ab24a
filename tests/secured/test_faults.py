"""Clusters behind TLS while something fails: what is said, what goes on, and that it heals by itself."""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kview.config.security import Security
from kview.derive.view import View
from kview.language import failures
from kview.observe.observer import Observer, ObserveSettings
from kview.plain.blocks import block
from tests.observe.fake_broker import COORDINATOR_VERSIONS, FakeBroker
from tests.observe.observing import Watched, broker_state, headline, observing
from tests.secured.certificates import DAY, Authority
from tests.secured.fakes import TlsBroker, server_context
from tests.secured.settings import read, trusting

QUICK = ObserveSettings(interval_s=0.2, silence_s=20.0, retry_first_s=0.2, retry_most_s=0.4)
"""Patient, so that a busy machine is not taken for a silent broker."""
DESCRIBE_GROUPS = 15


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


class Cluster:
    """Two brokers behind TLS, and the settings with which kview trusts them. Broker 0 leads the partition."""

    def __init__(self, authority: Authority, folder: Path) -> None:
        self.folder = folder
        self.good = server_context(authority.issue("broker"), folder)
        self.expired = server_context(authority.issue("broker", ends_in=-DAY), folder)
        self.brokers = [self.broker(node) for node in (0, 1)]
        self.advertise()
        self.text = "security.protocol=SSL\n" + trusting(authority.write(folder / "ca.pem"))

    def broker(self, node: int) -> TlsBroker:
        """Start a broker."""
        return TlsBroker(self.good, node=node)

    def advertise(self) -> None:
        """Let every broker list the addresses of all."""
        listed = {broker.node: broker.address for broker in self.brokers}
        for broker in self.brokers:
            broker.advertised = listed

    def security(self) -> Security:
        """The settings as their file has them now."""
        return read(self.folder, self.text).security

    @contextmanager
    def watched(self, silence_s: float = QUICK.silence_s) -> Iterator[Watched]:
        """An observer of both brokers, once both are up."""
        settings = replace(QUICK, silence_s=silence_s)
        observer = Observer(
            [self.brokers[0].address], settings, security=self.security(), reread=self.security
        )
        observer.connect()
        with closing(observer):
            watched = Watched(observer)
            watched.until(lambda view: states(view) == ["up", "up"], "both are up")
            yield watched


@pytest.fixture
def cluster(authority: Authority, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(authority, tmp_path)
    yield cluster
    for broker in cluster.brokers:
        broker.close()


def states(view: View) -> list[str]:
    return [broker_state(view, node) for node in (0, 1)]


def watermark(view: View) -> list[int]:
    return [int(offset) for offset in view.snapshot.partitions.high_watermark]


def reads(offset: int, view: View) -> bool:
    return watermark(view) == [offset]


def reconnected(brokers: Sequence[TlsBroker], before: Sequence[int], view: View) -> bool:
    """Whether kview has connected again to each, and each is up."""
    again = all(broker.handshakes > then for broker, then in zip(brokers, before, strict=True))
    return again and states(view) == ["up", "up"]


def falls_silent(watched: Watched, node: int, why: str) -> View:
    """The view that says why a broker is silent. Everything about the other one goes on."""
    began_ms = watched.views[-1].snapshot.observation.ended_ms
    view = watched.until(lambda one: why in block(one, "test"), why)
    table = view.snapshot.brokers
    row = table.id.tolist().index(node)
    assert str(table.state[row]) == "silent"
    assert began_ms - 2000 <= table.since_ms[row] <= view.snapshot.observation.ended_ms
    other = 1 - node
    for seen in watched.views:
        assert broker_state(seen, other) == "up"
    return view


def test_a_certificate_that_expires_during_a_run(cluster: Cluster) -> None:
    """Connections that are open go on; the next ones fail until the broker has a new certificate."""
    broker = cluster.brokers[1]
    with cluster.watched() as watched:
        broker.context = cluster.expired
        broker.drop_connections()
        before = broker.handshakes
        view = falls_silent(watched, 1, "its certificate has expired")
        assert watermark(view) == [100]
        broker.context = cluster.good
        watched.until(lambda view: states(view) == ["up", "up"], "it is up again")
    assert broker.handshakes <= before + 6, "on two connections, a refusal is not repeated at once"


@pytest.mark.slow  # half a minute; test_renewal.py reads a key store again, test_tls.py logs in with one
def test_a_client_certificate_that_is_renewed_on_disk(authority: Authority, cluster: Cluster) -> None:
    alice = cluster.folder / "alice.pem"
    authority.issue("alice").write(alice)
    cluster.text += f"ssl.keystore.location={alice}\n"
    other = Authority("the next authority")
    with cluster.watched() as watched:
        asking = server_context(authority.issue("broker"), cluster.folder)
        asking.verify_mode = ssl.CERT_REQUIRED
        asking.load_verify_locations(cadata=other.pem())
        cluster.brokers[1].context = asking
        cluster.brokers[1].drop_connections()
        falls_silent(watched, 1, "does not accept kview's certificate")
        other.issue("alice").write(alice)
        watched.until(lambda view: states(view) == ["up", "up"], "the new certificate is used")


def test_a_proxy_that_drops_one_broker(cluster: Cluster) -> None:
    dropped = cluster.brokers[1]
    with cluster.watched() as watched:
        dropped.dropped = True
        dropped.drop_connections()
        view = falls_silent(watched, 1, "closes connections without answering")
        assert watermark(view) == [100]
        dropped.dropped = False
        watched.until(lambda view: states(view) == ["up", "up"], "it is up again")


def test_a_broker_that_comes_back_at_another_port(cluster: Cluster) -> None:
    with cluster.watched() as watched:
        cluster.brokers[1].close()
        falls_silent(watched, 1, "connection refused")
        cluster.brokers[1] = cluster.broker(1)
        cluster.advertise()
        view = watched.until(lambda view: states(view) == ["up", "up"], "it is up again")
        assert view.snapshot.brokers.port.tolist() == [broker.port for broker in cluster.brokers]


def test_a_half_open_link(cluster: Cluster) -> None:
    """The other side is there and says nothing, neither on open connections nor on new ones."""
    leader = cluster.brokers[0]
    with cluster.watched(silence_s=3.0) as watched:
        leader.hang()
        falls_silent(watched, 0, "accepts connections but does not answer")
        leader.log_start = leader.high_watermark = 250
        leader.go_on()
        watched.until(lambda view: states(view) == ["up", "up"], "it is up again")
        watched.until(lambda view: watermark(view) == [250], "its partition is read again")


def test_connections_that_brokers_close_when_idle_are_opened_again_without_a_word(cluster: Cluster) -> None:
    with cluster.watched() as watched:
        watched.views.clear()
        for number in range(5):
            handshakes = [broker.handshakes for broker in cluster.brokers]
            for broker in cluster.brokers:
                broker.drop_connections()
            cluster.brokers[0].high_watermark += 1
            watched.until(partial(reads, 101 + number), "the next watermark")
            watched.until(partial(reconnected, cluster.brokers, handshakes), "both are connected again")
        assert {state for view in watched.views for state in states(view)} == {"up"}


def group_errors(view: View) -> list[str]:
    table = view.snapshot.groups
    return [
        failures.of_group(str(kind), int(code), 0)
        for kind, code in zip(table.error, table.error_code, strict=True)
    ]


def test_a_group_that_kview_may_no_longer_see_stays_and_is_not_said_to_be_deleted() -> None:
    with FakeBroker(versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups = 0, ("billing",)
        with observing([broker.address], QUICK) as observer:
            watched = Watched(observer)
            watched.until(lambda view: view.snapshot.groups.state.tolist() == ["Empty"], "it is described")
            broker.groups, broker.group_error = (), 30
            refusal = "kview is not authorized to read it (GROUP_AUTHORIZATION_FAILED)"
            watched.until(lambda view: group_errors(view) == [refusal], "it is refused")
            broker.groups, broker.group_error = ("billing",), 0
            watched.until(lambda view: group_errors(view) == [""], "it is seen again")
        assert [event.kind for view in watched.views for event in view.new_events if event.group] == []


def test_groups_that_kview_may_not_see_are_said_even_if_it_may_see_others_but_not_their_topic() -> None:
    """With the rights to `app` and nothing else: `__consumer_offsets` is hidden, too."""

    def only_app(answer: Any) -> None:
        for group in answer.groups:
            group.error_code = 0 if group.group_id == "app" else 30

    with FakeBroker(versions=COORDINATOR_VERSIONS) as broker:
        broker.groups, broker.change[DESCRIBE_GROUPS] = ("app",), only_app
        with observing([broker.address], QUICK) as observer:
            watched = Watched(observer)
            watched.until(lambda view: view.snapshot.groups.state.tolist() == ["Empty"], "it is described")
            view = watched.look()
    assert any(
        said.startswith("kview is not authorized to see all groups (GROUP_AUTHORIZATION_FAILED)")
        for said in headline(view)
    ), headline(view)
