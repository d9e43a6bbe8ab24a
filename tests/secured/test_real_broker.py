"""A real broker with secured listeners: kview gets in by each way, and says why if it does not."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates as pkcs12

from kview.config.security import PLAINTEXT, Security
from kview.derive.view import View
from kview.errors import ClusterUnreachable
from kview.language import inspection
from kview.language.errors import sentence
from kview.model.address import Address
from kview.model.events import EventKind
from kview.model.failures import FailureKind, Part
from kview.model.inspection import QuotasAnswer, QuotasRequest
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.observe.observer import Observer, ObserveSettings
from kview.plain.blocks import block
from tests.observe.asking import answered
from tests.observe.observing import Watched, broker_state, headline, until
from tests.real_kafka.asking import create_topic
from tests.real_kafka.secured import (
    NOBODY,
    NOBODYS_PASSWORD,
    PASSWORD,
    SCRAM_PASSWORD,
    SEES_ALL,
    SEES_TOPICS,
    SESSION_MS,
    USER,
    SecuredKafka,
)
from tests.secured.certificates import DAY, Authority, encryption
from tests.secured.settings import login, security, token_client, trusting
from tests.secured.token_endpoint import CLIENT_ID, CLIENT_SECRET, TokenEndpoint
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # other tests here log in to brokers that they are themselves

WITHIN_S = 10.0


@pytest.fixture(scope="module")
def kafka(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    java, jars = kafka_runtime
    with SecuredKafka(tmp_path_factory.mktemp("secured"), java, jars) as cluster:
        assert not create_topic(cluster.address("PLAIN"), "invoice", [[0], [0]], {})
        yield cluster


@contextmanager
def observing(address: Address, settings: Security) -> Iterator[Observer]:
    observer = Observer([address], ObserveSettings(interval_s=0.2), security=settings)
    observer.connect(WITHIN_S)
    try:
        yield observer
    finally:
        observer.close()


def seen(address: Address, settings: Security) -> Snapshot:
    """An observation that has everything."""
    with observing(address, settings) as observer:
        return until(
            observer,
            lambda one: (
                not one.observation.failures
                and bool((one.partitions.high_watermark >= 0).all())
                and bool((one.brokers.disk_bytes != UNKNOWN).all())
            ),
            "every part is answered",
        )


def refusal(address: Address, settings: Security) -> str:
    """What kview says instead of connecting."""
    with pytest.raises(ClusterUnreachable) as caught:
        Observer([address], security=settings).connect(WITHIN_S)
    return sentence(caught.value)


WAYS = ("TLS", "PEM certificate", "PKCS12 stores", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@pytest.mark.parametrize("way", WAYS)
def test_each_way_in_shows_the_same_cluster(
    kafka: SecuredKafka, token_endpoint: TokenEndpoint, tmp_path: Path, way: str
) -> None:
    trusted = trusting(kafka.folder / "ca.pem")
    alice = kafka.authority.issue("alice")
    if way == "PEM certificate":
        path = alice.write(tmp_path / "alice.pem", "wonderland")
        identity = f"ssl.keystore.type=PEM\nssl.keystore.location={path}\nssl.key.password=wonderland\n"
        listener, text = "MTLS", f"security.protocol=SSL\n{trusted}{identity}"
    elif way == "PKCS12 stores":
        key_store, trust_store = tmp_path / "keys.jks", tmp_path / "trust.p12"
        key_store.write_bytes(
            pkcs12(b"alice", alice.key, alice.certificate, [alice.authority], encryption("looking-glass"))
        )
        entry = PKCS12Certificate(alice.authority, b"ca")
        trust_store.write_bytes(serialize_java_truststore([entry], encryption("changeit")))
        trusted = f"ssl.truststore.location={trust_store}\nssl.truststore.password=changeit\n"
        identity = f"ssl.keystore.location={key_store}\nssl.keystore.password=looking-glass\n"
        listener, text = "MTLS", f"security.protocol=SSL\n{trusted}{identity}"
    elif way == "OAUTHBEARER":
        listener, text = "OAUTH", token_client(token_endpoint.url, CLIENT_ID, CLIENT_SECRET)
    elif way == "TLS":
        listener, text = "TLS", f"security.protocol=SSL\n{trusted}"
    elif way == "SCRAM-SHA-512":
        listener, text = "SS", login(way, USER, SCRAM_PASSWORD, "SASL_SSL") + trusted
    else:
        password = PASSWORD if way == "PLAIN" else SCRAM_PASSWORD
        listener, text = "SP", login(way, USER, password)
    expected = seen(kafka.address("PLAIN"), PLAINTEXT)
    found = seen(kafka.address(listener), security(tmp_path, text))
    assert found.brokers.state.tolist() == ["up"]
    assert found.partitions.topic.tolist() == ["invoice", "invoice"]
    assert found.partitions.high_watermark.tolist() == expected.partitions.high_watermark.tolist() == [0, 0]


@pytest.fixture
def token_endpoint() -> Iterator[TokenEndpoint]:
    with TokenEndpoint() as endpoint:
        yield endpoint


HIDDEN = [
    f"kview is not authorized to see all {what}s ({what.upper()}_AUTHORIZATION_FAILED): only those it may see"
    " are shown and judged"
    for what in ("topic", "group")
]


def test_what_a_user_may_not_see_is_said_and_not_shown_as_absent(kafka: SecuredKafka, tmp_path: Path) -> None:
    settings = security(tmp_path, login("SCRAM-SHA-512", NOBODY, NOBODYS_PASSWORD))
    with observing(kafka.address("SP"), settings) as observer:
        watched = Watched(observer)
        view = watched.until(lambda one: headline(one) == HIDDEN, "both are said")
        text = block(view, "test")
        assert "groups: broker 0 does not let kview list its groups (GROUP_AUTHORIZATION_FAILED)" in text
        assert "≥0 topics  ≥0 partitions" in text
        failed = {failure.part: failure.code for failure in view.snapshot.observation.failures}
        assert failed.items() >= {Part.QUORUM: 31, Part.LOG_DIRS: 31, Part.SESSION_TIMEOUT: 31}.items()
    assert view.snapshot.brokers.state.tolist() == ["up"]
    assert view.snapshot.brokers.disk_bytes.tolist() == [UNKNOWN]
    may = security(tmp_path, login("SCRAM-SHA-512", USER, SCRAM_PASSWORD))
    with observing(kafka.address("SP"), may) as observer:
        watched = Watched(observer)
        view = watched.until(
            lambda one: Part.TOPICS in one.snapshot.observation.asked, "topics are asked for"
        )
        assert not any("not authorized" in said for said in headline(view))


def topics(view: View) -> set[str]:
    return set(view.snapshot.partitions.topic.tolist())


def test_an_acl_that_is_withdrawn_is_said_and_deletes_no_topic(kafka: SecuredKafka, tmp_path: Path) -> None:
    settings = security(tmp_path, login("SCRAM-SHA-512", NOBODY, NOBODYS_PASSWORD))
    kafka.allow(NOBODY, SEES_TOPICS)
    with observing(kafka.address("SP"), settings) as observer:
        watched = Watched(observer)
        before = watched.until(
            lambda one: topics(one) == {"invoice"} and headline(one) == HIDDEN[1:], "topics are seen"
        )
        assert "1 topic  2 partitions" in block(before, "test")
        kafka.withdraw(NOBODY, SEES_TOPICS)
        said = r"kview is not authorized to see all topics \(TOPIC_AUTHORIZATION_FAILED, for [\d.]+ m?s\):"
        view = watched.until(
            lambda one: not topics(one) and bool(re.match(said, headline(one)[0])), "topics are hidden"
        )
        assert "≥0 topics  ≥0 partitions" in block(view, "test")
        kafka.allow(NOBODY, SEES_TOPICS)
        watched.until(lambda one: topics(one) == {"invoice"} and headline(one) == HIDDEN[1:], "all is back")
    kafka.withdraw(NOBODY, SEES_TOPICS)
    assert [event.kind for one in watched.views for event in one.new_events if event.topic == "invoice"] == [
        EventKind.TOPIC_UNSEEN,
        EventKind.TOPIC_SEEN,
    ]


def test_the_acls_in_the_readme_are_enough(kafka: SecuredKafka, tmp_path: Path) -> None:
    settings = security(tmp_path, login("SCRAM-SHA-512", NOBODY, NOBODYS_PASSWORD))
    kafka.allow(NOBODY, SEES_ALL)
    snapshot = seen(kafka.address("SP"), settings)
    kafka.withdraw(NOBODY, SEES_ALL)
    assert snapshot.partitions.topic.tolist() == ["invoice", "invoice"]
    assert snapshot.partitions.min_isr.tolist() == [1, 1]
    assert snapshot.brokers.disk_bytes.tolist() != [UNKNOWN]
    assert snapshot.observation.controller_id == 0


def test_quotas_need_one_of_these_acls_and_without_it_they_are_not_none(
    kafka: SecuredKafka, tmp_path: Path
) -> None:
    settings = security(tmp_path, login("SCRAM-SHA-512", NOBODY, NOBODYS_PASSWORD))
    with observing(kafka.address("SP"), settings) as observer:
        observer.observe()
        refused: QuotasAnswer = answered(observer, QuotasRequest())
        assert inspection.failure(refused.failure, refused) == (
            "kview is not authorized to read quotas: it needs DescribeConfigs on the cluster"
            " (CLUSTER_AUTHORIZATION_FAILED)"
        )
        kafka.allow(NOBODY, SEES_ALL)
        wait_until(lambda: not answered(observer, QuotasRequest()).failure, "the ACLs hold")
    kafka.withdraw(NOBODY, SEES_ALL)


@pytest.mark.slow  # it waits for sessions to end
def test_sessions_are_renewed_at_a_real_broker(kafka: SecuredKafka, tmp_path: Path) -> None:
    settings = security(tmp_path, login("PLAIN", USER, PASSWORD))
    with observing(kafka.address("SP"), settings) as observer:
        watched = Watched(observer)
        first_ms = watched.look().snapshot.observation.ended_ms
        watched.until(
            lambda one: one.snapshot.observation.ended_ms > first_ms + 3 * SESSION_MS, "three sessions"
        )
        assert {broker_state(one, 0) for one in watched.views} == {"up"}
        failures = [failure for one in watched.views for failure in one.snapshot.observation.failures]
        assert not [failure for failure in failures if failure.kind is not FailureKind.OVERDUE]


MISTAKES = {
    "no TLS on a TLS port": ("TLS", "", "is a TLS listener, but kview was not asked to use TLS: write"),
    "TLS on a plain port": (
        "PLAIN", "{tls}", "is a plaintext listener, but kview was asked to use TLS: give the address of",
    ),
    "TLS on a SASL port": ("SP", "{tls}", "is a plaintext listener, but kview was asked to use TLS"),
    "a controller's port": ("CONTROLLER", "", "is a controller's listener, not a broker's"),
    "TLS on a controller's port": ("CONTROLLER", "{tls}", "is a controller's listener, not a broker's"),
    "no login on a SASL port": (
        "SP", "", "asks for a login (SASL), and kview was given none: write"
        " security.protocol=SASL_PLAINTEXT (or SASL_SSL), sasl.mechanism (PLAIN, SCRAM-SHA-256,"
        " SCRAM-SHA-512) and",
    ),
    "no login on a SASL_SSL port": ("SS", "{tls}", "asks for a login (SASL), and kview was given none"),
    "a login where there are none": ("PLAIN", "{bob}", "does not support logins (SASL), so kview did"),
    "unknown authority": ("TLS", "security.protocol=SSL\n", "kview does not trust the certificate of"),
    "another authority": ("TLS", "{other}", "kview does not trust the certificate of"),
    "no client certificate": ("MTLS", "{tls}", "asks for a client certificate, and kview"),
    "expired client certificate": ("MTLS", "{tls}{expired}", "does not accept the client certificate in"),
    "client certificate of another authority": ("MTLS", "{tls}{foreign}", "does not accept the client"),
    "wrong PLAIN password": ("SP", "{plain}", "does not accept this user name and password (PLAIN)"),
    "wrong SCRAM password": ("SP", "{scram}", "does not accept this user name and password (SCRAM-"),
    "wrong mechanism": (
        "OAUTH", "{bob}", "does not offer the SASL mechanism PLAIN: set sasl.mechanism to one that it"
        " offers: OAUTHBEARER",
    ),
    "expired token": ("OAUTH", "{token}", "does not accept the token from http://127.0.0.1"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_has_a_sentence(
    kafka: SecuredKafka, token_endpoint: TokenEndpoint, tmp_path: Path, mistake: str
) -> None:
    listener, text, said = MISTAKES[mistake]
    tls = "security.protocol=SSL\n" + trusting(kafka.folder / "ca.pem")
    other = trusting(Authority().write(tmp_path / "other.pem"))
    expired = kafka.authority.issue("alice", ends_in=-DAY).write(tmp_path / "expired.pem")
    foreign = Authority().issue("alice").write(tmp_path / "foreign.pem")
    token_endpoint.lifetime_s = -600
    words = {
        "{tls}": tls,
        "{other}": f"security.protocol=SSL\n{other}",
        "{bob}": login("PLAIN", USER, PASSWORD),
        "{plain}": login("PLAIN", USER, "not his"),
        "{scram}": login("SCRAM-SHA-256", USER, "not his"),
        "{expired}": f"ssl.keystore.location={expired}\n",
        "{foreign}": f"ssl.keystore.location={foreign}\n",
        "{token}": token_client(token_endpoint.url, CLIENT_ID, CLIENT_SECRET),
    }
    for name, lines in words.items():
        text = text.replace(name, lines)
    found = refusal(kafka.address(listener), security(tmp_path, text))
    assert said in found
    assert str(kafka.address(listener)) in found
