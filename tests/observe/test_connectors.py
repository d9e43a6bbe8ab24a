"""Kafka Connect's REST API: what is read of it, and that no server, in whatever state, hurts the rest."""

import base64
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kview.config.connect_rest import ConnectRest
from kview.config.secret import Secret
from kview.config.security import Security
from kview.language import failures
from kview.model.failures import Cause, FailureKind, Part
from kview.model.snapshot import Connectors, Snapshot
from kview.model.states import GroupType
from kview.model.units import NO_BROKER, UNKNOWN
from kview.observe.access import access
from kview.observe.causes import LinkError, Refused
from kview.observe.connectors import MOST_BYTES, MOST_LINE, MOST_ROWS, decoded, of_group, read
from kview.observe.groups.facts import GroupFacts
from kview.observe.groups.members import MemberFacts
from kview.observe.observer import Observer, ObserveSettings
from tests.observe.fake_broker import FakeBroker, Server
from tests.observe.observing import until
from tests.observe.rest_server import REAL, RestServer, connectors, entry, http
from tests.secured.certificates import DAY, Authority
from tests.secured.fakes import server_context
from tests.secured.settings import read as properties
from tests.secured.settings import trusting

PASSWORD = "hush-7c1e"
QUICK = ObserveSettings(interval_s=0.2, connectors_s=0.1, connectors_within_s=0.5)
PATIENT_S = 20.0


def rows(table: Connectors) -> list[tuple[Any, ...]]:
    """The rows without the group and the worker."""
    names = ("connector", "task", "kind", "state", "trace", "root_cause")
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


@pytest.fixture
def server() -> Iterator[RestServer]:
    with RestServer() as server:
        yield server


def cause(server: RestServer | str, within_s: float = PATIENT_S, rest: ConnectRest | None = None) -> Cause:
    """Why nothing was read."""
    url = server if isinstance(server, str) else server.url
    with pytest.raises((LinkError, Refused)) as raised:
        read(rest or ConnectRest(url), None, within_s)
    assert isinstance(raised.value, LinkError | Refused)
    return raised.value.cause


def test_all_states_are_read_with_the_reasons_for_failures(server: RestServer) -> None:
    exception = "org.apache.kafka.connect.errors.ConnectException: "
    exiting = exception + "Exiting WorkerSinkTask due to unrecoverable exception."
    relation = 'java.sql.SQLException: relation "orders" does not exist'
    table = read(ConnectRest(server.url), None, PATIENT_S)
    assert rows(table) == [
        ("bad", -1, "sink", "FAILED", exception + "no table [red]\aorders", ""),
        ("ok-sink", -1, "sink", "RUNNING", "", ""),
        ("ok-sink", 0, "sink", "RUNNING", "", ""),
        ("orders-sink", -1, "sink", "RUNNING", "", ""),
        ("orders-sink", 0, "sink", "FAILED", exiting, relation),
        ("orders-sink", 1, "sink", "FAILED", "java.lang.IllegalStateException: cannot start", ""),
        ("orders-sink", 2, "sink", "FAILED", exiting, relation),
        ("orders-src", -1, "source", "RUNNING", "", ""),
        ("orders-src", 0, "source", "RUNNING", "", ""),
        ("orders-src", 1, "source", "RUNNING", "", ""),
        ("paused", -1, "sink", "PAUSED", "", ""),
        ("paused", 0, "sink", "PAUSED", "", ""),
        ("stopped", -1, "sink", "STOPPED", "", ""),
    ]
    assert set(table.worker) == {"127.0.0.1:18083"}


def test_only_get_is_sent_and_the_password_only_in_its_header(server: RestServer) -> None:
    for login in (False, True):
        rest = ConnectRest(f"{server.url}/connect", *(("bob", Secret(PASSWORD)) if login else ()))
        read(rest, None, PATIENT_S)
    without, given = server.heads
    for head in server.heads:
        assert head.startswith("GET /connect/connectors?expand=status HTTP/1.1\r\n")
        assert f"\r\nHost: 127.0.0.1:{server.port}\r\n" in head and head.endswith("\r\n\r\n")
    assert "Authorization" not in without
    assert f"Authorization: Basic {base64.b64encode(f'bob:{PASSWORD}'.encode()).decode()}\r\n" in given


def test_a_redirect_is_not_followed(server: RestServer) -> None:
    with RestServer() as other:
        server.answer = http(b"", "307 Temporary Redirect", f"Location: {other.url}/connectors\r\n")
        assert cause(server) == Cause(FailureKind.HTTP_STATUS, 307)
        assert not other.heads


@pytest.mark.parametrize(
    "status", ["401 Unauthorized", "403 Forbidden", "404 Not Found", "500 Oops", "204 No"]
)
def test_another_status_is_the_cause(server: RestServer, status: str) -> None:
    server.answer = http(b"<html>" * 1000, status)
    code = int(status[:3])
    assert cause(server) == Cause(FailureKind.HTTP_STATUS, code)
    assert failures.of(FailureKind.HTTP_STATUS, 401) == "answered 401 Unauthorized"
    assert failures.of(FailureKind.HTTP_STATUS, 799) == "answered with another status than 200"


DEEP = b'{"a":{"status":{"x":' + b"[" * 200_000


STATUS = b'{"a":{"status":%s}}'


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>", b"\0\1\2", b"\xff\xfe", b"null", b"3", b"[]", b'["a"]', b'{"a"', b'{"a":null}',
        b'{"a":{}}', b'{"a":[]}', b'{"a":{"info":{}}}', b'{"\\ud800":{}}', DEEP,
        STATUS % b'{"connector":"RUNNING","tasks":[]}',
        STATUS % b'{"connector":{"state":1},"tasks":[]}',
        STATUS % b'{"connector":{"state":"RUNNING"}}',
        *(
            STATUS % b'{"connector":{"state":"RUNNING"},"tasks":[{"id":%s,"state":"RUNNING"}]}' % number
            for number in (b"-1", b"2147483648", b"1e99", b'"0"', b"null", b"9" * 400)
        ),
    ],
)  # fmt: skip
def test_garbage_is_malformed(server: RestServer, body: bytes) -> None:
    server.answer = http(body)
    assert cause(server) == Cause(FailureKind.MALFORMED)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"\0" * 100, FailureKind.MALFORMED),
        (b"SSH-2.0-OpenSSH\r\n", FailureKind.MALFORMED),
        (b"HTTP/1.1 abc\r\n\r\n", FailureKind.MALFORMED),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 101 + b"\r\n", FailureKind.MALFORMED),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n{}", FailureKind.MALFORMED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000000\r\n\r\n{}", FailureKind.INCOMPLETE),
        (http()[:-1], FailureKind.INCOMPLETE),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n{}", FailureKind.INCOMPLETE),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", FailureKind.INCOMPLETE),
        (b"HTTP/1.1 200 OK\r\n\r\n" + REAL[:-2], FailureKind.MALFORMED),
        (b"\x15\x03\x03\x00\x02\x02\x50", FailureKind.TLS),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9, FailureKind.CLOSED),
    ],
)
def test_an_answer_that_is_not_http_or_is_cut_has_its_cause(
    server: RestServer, answer: bytes, kind: FailureKind
) -> None:
    server.answer = answer
    assert cause(server).kind is kind


def test_an_empty_answer_is_a_closed_connection(server: RestServer) -> None:
    server.acts = lambda connection: None
    assert cause(server) == Cause(FailureKind.CLOSED)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n" + b"{" + b" " * 4000, b"HTTP/1.1 2"])
def test_silence_and_drips_end_at_the_deadline(server: RestServer, answer: bytes) -> None:
    server.answer, server.acts = answer, server.drip if answer else server.hang
    began_s = time.monotonic()
    if answer.endswith(b" 2"):
        server.acts = server.half
    assert cause(server, within_s=0.5) == Cause(FailureKind.SILENT)
    assert time.monotonic() - began_s < 5


def test_answers_that_are_too_large_are_not_kept(server: RestServer) -> None:
    server.acts = server.flood
    assert cause(server) == Cause(FailureKind.TOO_LARGE)
    server.acts = None
    server.answer = http(b" " * (MOST_BYTES + 1))
    assert cause(server) == Cause(FailureKind.TOO_LARGE)
    server.answer = connectors(a=entry("RUNNING", *["RUNNING"] * MOST_ROWS))
    assert cause(server) == Cause(FailureKind.TOO_LARGE)
    server.answer = connectors(a=entry("RUNNING", *["RUNNING"] * (MOST_ROWS - 1)))
    assert len(read(ConnectRest(server.url), None, PATIENT_S)) == MOST_ROWS
    assert len(http(REAL + b" " * (2 << 20))) > 2 << 20
    server.answer = http(REAL + b" " * (2 << 20))
    assert len(read(ConnectRest(server.url), None, PATIENT_S)) == 13, "2 MB are read"


def test_no_server_and_no_name_have_their_causes() -> None:
    with Server(lambda connection: None) as gone:
        port = gone.port
    assert cause(f"http://127.0.0.1:{port}") == Cause(FailureKind.REFUSED)
    assert cause("http://nobody.invalid:8083") == Cause(FailureKind.UNRESOLVED)
    assert cause(f"http://{'a' * 70}.example") == Cause(FailureKind.UNRESOLVED), "a label of 70 letters"


def test_names_and_traces_are_kept_as_they_are_but_bounded() -> None:
    name = "[red]" + "n" * 244
    trace = (
        "\n\n  java.lang.Exception: \x1b[31m[bold]"
        + "x" * 5000
        + "\n\tat a.b\r\nCaused by: y\nCaused by: "
        + "z" * 5000
    )
    body = json.dumps({name: entry("FAILED", "FAILED", kind="weird", trace=trace)}).encode()
    for _, task, kind, state, first, root in rows(decoded(body)):
        assert (kind, state) == ("", "FAILED") and task in (-1, 0)
        assert first == ("java.lang.Exception: \x1b[31m[bold]" + "x" * 5000)[:MOST_LINE]
        assert root == "z" * MOST_LINE
    assert set(decoded(body).connector) == {name}
    odd = json.dumps({"a": entry("DESTROYED", "FAILED")}).encode()
    assert rows(decoded(odd)) == [("a", -1, "sink", "DESTROYED", "", ""), ("a", 0, "sink", "FAILED", "", "")]
    assert rows(decoded(b"{}")) == []
    twice = {"a": entry("RUNNING", "PAUSED"), "n" * 2000: entry(), "n" * 1999: entry()}
    twice["a"]["status"]["tasks"] *= 2
    keys = [row[:2] for row in rows(decoded(json.dumps(twice).encode()))]
    assert keys == [("a", -1), ("a", 0), ("n" * 1000, -1)], "each key once"


def test_the_group_is_the_one_whose_workers_run_the_connectors() -> None:
    table = decoded(REAL)

    def group(**runs: tuple[str, ...]) -> str:
        groups = {
            name: GroupFacts(
                name, GroupType.CONNECT, "Stable", 0, members=(MemberFacts("m", "c", "h", connectors=own),)
            )
            for name, own in runs.items()
        }
        found = set(of_group(table, groups).group.tolist())
        assert len(found) == 1
        return str(found.pop())

    assert group() == group(a=()) == group(a=("else",)) == ""
    assert group(a=("bad", "else")) == "a"
    assert group(a=("bad", "else"), b=("bad", "paused")) == "b"
    assert group(a=("bad",), b=("bad",)) == "", "nobody knows"
    assert of_group(table, {}) is table
    workers = {"a": GroupFacts("a", GroupType.CONNECT, "PreparingRebalance", 0)}
    assert set(of_group(table, workers, before="a").group) == {"a"}, "nobody tells during a rebalance"
    assert set(of_group(table, workers, before="gone").group) == {""}


class Scene:
    """An observer of one broker and a REST server."""

    def __init__(
        self, broker: FakeBroker, server: RestServer, settings: ObserveSettings, url: str = ""
    ) -> None:
        self.rest = ConnectRest(url or server.url, "bob", Secret(PASSWORD))
        self.observer = Observer(
            [broker.address], settings, security=Security(connect=self.rest), reread=self.reread
        )
        self.readings = 0
        self.observer.connect()

    def reread(self) -> Security:
        self.readings += 1
        return Security(connect=self.rest)

    def until(self, holds: Callable[[Snapshot], bool], what: str) -> Snapshot:
        return until(self.observer, holds, what)


def failed(seen: Snapshot) -> Cause | None:
    """Why the connectors were not read, None if they were."""
    found = [one for one in seen.observation.failures if one.part is Part.CONNECTORS]
    assert all(one.broker == NO_BROKER for one in found)
    return Cause(found[0].kind, found[0].code) if found else None


@pytest.fixture
def watch(server: RestServer) -> Iterator[Callable[..., Scene]]:
    scenes: list[Scene] = []
    with FakeBroker() as broker:

        def watch(settings: ObserveSettings = QUICK, url: str = "") -> Scene:
            scenes.append(Scene(broker, server, settings, url))
            return scenes[-1]

        yield watch
        for scene in scenes:
            scene.observer.close()


def test_the_first_snapshot_has_the_states(watch: Callable[..., Scene]) -> None:
    seen = watch(replace(QUICK, interval_s=5.0, connectors_s=15.0)).observer.observe()
    assert len(seen.connectors) == 13 and failed(seen) is None
    assert Part.CONNECTORS in seen.observation.asked
    assert 0 <= seen.observation.ended_ms - seen.observation.connectors_received_ms < 60_000


def test_without_an_address_nothing_is_asked(server: RestServer) -> None:
    with FakeBroker() as broker, closing(Observer([broker.address], QUICK)) as observer:
        observer.connect()
        seen = [observer.observe() for _ in range(3)][-1]
    assert not server.heads and failed(seen) is None
    assert seen.observation.connectors_received_ms == UNKNOWN
    assert Part.CONNECTORS not in seen.observation.asked


def test_a_silent_server_holds_up_nothing_and_is_unknown_until_then(
    server: RestServer, watch: Callable[..., Scene]
) -> None:
    server.acts = server.hang
    scene = watch(replace(QUICK, connectors_within_s=60.0))
    began_s = time.monotonic()
    seen = [scene.observer.observe() for _ in range(5)][-1]
    assert time.monotonic() - began_s < 10
    assert failed(seen) == Cause(FailureKind.NOT_CONNECTED)
    assert seen.observation.connectors_received_ms == UNKNOWN and not len(seen.connectors)
    assert seen.brokers.state.tolist() == ["up"] and seen.partitions.high_watermark.tolist() == [100]
    began_s = time.monotonic()
    scene.observer.close()
    assert time.monotonic() - began_s < 2, "nor the end"


def test_a_failure_keeps_the_states_and_their_age_and_heals(
    server: RestServer, watch: Callable[..., Scene]
) -> None:
    scene = watch()
    before = scene.until(lambda seen: len(seen.connectors) == 13, "the states")
    server.answer = http(b"", "500 Oops")
    seen = scene.until(lambda seen: failed(seen) is not None, "the failure")
    assert failed(seen) == Cause(FailureKind.HTTP_STATUS, 500)
    assert len(seen.connectors) == 13
    (failure,) = seen.observation.failures
    assert failure.shown_since_ms == seen.observation.connectors_received_ms
    assert failure.shown_since_ms >= before.observation.connectors_received_ms
    server.answer = connectors(a=entry("RUNNING", "FAILED"))
    seen = scene.until(lambda seen: failed(seen) is None, "the end of the failure")
    assert [row[:4] for row in rows(seen.connectors)] == [
        ("a", -1, "sink", "RUNNING"),
        ("a", 0, "sink", "FAILED"),
    ]


def test_failures_are_asked_again_less_and_less_often(
    server: RestServer, watch: Callable[..., Scene]
) -> None:
    server.answer = http(b"", "500 Oops")
    scene = watch(replace(QUICK, connectors_s=0.3))
    scene.until(lambda seen: len(server.times_s) >= 5, "five requests")
    gaps_s = [b - a for a, b in pairwise(server.times_s)]
    assert gaps_s[3] > 0.7 and sum(gaps_s[:4]) > 2.3, f"0.3, 0.6, 1.2 and 1.2 s are meant: {gaps_s}"


def test_a_refused_login_is_read_again_and_no_message_has_the_password(
    server: RestServer, watch: Callable[..., Scene], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.login = base64.b64encode(b"bob:another").decode()
    scene = watch()
    seen = scene.until(lambda seen: failed(seen) == Cause(FailureKind.HTTP_STATUS, 401), "the refusal")
    scene.until(lambda seen: scene.readings > 0, "the settings read again")
    assert (
        PASSWORD not in caplog.text
        and base64.b64encode(f"bob:{PASSWORD}".encode()).decode() not in caplog.text
    )
    assert PASSWORD not in repr(seen) + repr(scene.rest)
    scene.rest = replace(scene.rest, password=Secret("another"))
    scene.until(lambda seen: len(seen.connectors) > 0, "the states")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def test_tls_is_as_for_brokers(authority: Authority, tmp_path: Path) -> None:
    def asked(issued: Any, text: str, plain: bool = False) -> Cause | int:
        with RestServer(context=None if plain else server_context(issued, tmp_path)) as server:
            if plain:
                server.acts = server.at_once
            rest = ConnectRest(server.url.replace("http:", "https:"))
            prepared = access(replace(properties(tmp_path, text).security, connect=rest))
            assert prepared.rest is not None
            try:
                return len(read(rest, prepared.rest, PATIENT_S))
            except (LinkError, Refused) as error:
                return error.cause

    trusted = "security.protocol=SSL\n" + trusting(authority.write(tmp_path / "ca.pem"))
    good = authority.issue("worker")
    assert asked(good, trusted) == 13
    assert asked(good, "security.protocol=PLAINTEXT\n") == Cause(FailureKind.UNTRUSTED)
    assert asked(authority.issue("worker", ends_in=-DAY), trusted) == Cause(FailureKind.CERTIFICATE_EXPIRED)
    assert asked(good, trusted, plain=True) == Cause(FailureKind.NOT_TLS)
    with RestServer(context=server_context(good, tmp_path)) as server:
        kind = cause(server.url.replace("https:", "http:")).kind
        assert kind in (FailureKind.TLS, FailureKind.CLOSED)


def test_a_silent_handshake_ends_at_the_deadline(
    server: RestServer, authority: Authority, tmp_path: Path
) -> None:
    server.acts = server.hang
    rest = ConnectRest(server.url.replace("http:", "https:"))
    context = access(Security(connect=rest)).rest
    with pytest.raises(LinkError) as raised:
        read(rest, context, 0.5)
    assert raised.value.cause == Cause(FailureKind.SILENT)
