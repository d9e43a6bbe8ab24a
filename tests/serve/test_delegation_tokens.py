"""Delegation tokens (KIP-48): who gets one, how long it is valid, and what a client that logs in with it may
do."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse

from kview.config.secret import Secret
from kview.serve.login import Logins
from kview.simulate.codes import ErrorCode
from kview.simulate.tokens import Principal
from tests.real_kafka.asking import Address
from tests.real_kafka.secured import NOBODY, NOBODYS_PASSWORD, PASSWORD, USER, SecuredKafka
from tests.serve.secured import ADMIN, ALICE, Client, SecuredServed
from tests.serve.test_logins import PASSWORD as BOBS
from tests.serve.test_logins import SECOND_US, WRONG_SCRAM, Door, ScramClient
from tests.serve.token_client import (
    DAY_MS,
    Token,
    creation,
    description,
    expiry,
    renewal,
    token_in,
)
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import cluster_of
from tests.waiting import wait_until

KEY = "delegation.token.secret.key"
SCRAM = "SCRAM-SHA-256"
BOB, EVE = ("User", "bob"), ("User", "eve")
LIFE_MS, RENEWED_MS, SWEEP_MS = 7_000, 1_000, 500
SHORT = {
    "delegation.token.max.lifetime.ms": str(LIFE_MS),
    "delegation.token.expiry.time.ms": str(RENEWED_MS),
    "delegation.token.expiry.check.interval.ms": str(SWEEP_MS),
}
"""Times as short as tests need. Kafka's are 7 days, a day and an hour."""


class TokenDoor(Door):
    """A broker whose clients may log in with tokens."""

    def __init__(self, settings: Mapping[str, str] = SHORT) -> None:
        super().__init__()
        self.wire = Unwired(cluster_of(settings={KEY: "topsecret", **settings}))
        self.cluster = self.wire.cluster
        self._logins = Logins(self._logins.passwords, token_key=Secret("topsecret"))

    @property
    def now_ms(self) -> int:
        return self.cluster.kernel.now_us // 1000

    def user(self, name: str = "bob") -> UnwiredClient:
        """A client that has logged in with its password."""
        client = self.client()
        assert self.plain(client, name, BOBS if name == "bob" else "other").error_code == 0
        client.principal = f"User:{name}"
        return client

    def by_token(self, token: Token, mechanism: str = SCRAM) -> tuple[UnwiredClient, Any]:
        """A client that has logged in with a token, and the last answer to that."""
        scram, client = ScramClient(mechanism, token.id, token.password, ",tokenauth=true"), self.client()
        self.handshake(client, mechanism)
        first = self.authenticate(client, scram.first)
        last = self.authenticate(client, scram.final(first.auth_bytes)) if first is not None else None
        if last is not None:
            assert client.login is not None
            client.principal = client.login.principal
        return client, last

    def told(self, client: UnwiredClient, request: Any) -> Any:
        """Return the answer to a request that the controller carries out."""
        before = len(client.answers)
        self.wire.ask(client, request)
        self.pass_time(SECOND_US // 10)
        return self.last(client, before, request, None)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_with_a_token_is_its_owner_until_it_expires(mechanism: str) -> None:
    door = TokenDoor()
    token = token_in(door.told(door.user(), creation()))
    client, last = door.by_token(token, mechanism)
    assert client.principal == "User:bob"
    assert 0 < last.session_lifetime_ms < RENEWED_MS
    door.pass_time(RENEWED_MS * 1000)
    door.wire.ask(client, description())
    assert client.closed, "its session ends with the token"
    assert door.by_token(token, mechanism)[1].session_lifetime_ms == 0, "as in Kafka, until it is removed"
    door.pass_time(SWEEP_MS * 1000)
    late, last = door.by_token(token)
    assert last is None, "the controller has removed it"
    answer = door.delayed(late, SaslAuthenticateResponse, 2)
    assert (answer.error_code, answer.error_message) == (58, WRONG_SCRAM.format(SCRAM))


def test_who_logs_in_with_a_token_gets_none() -> None:
    door = TokenDoor()
    token = token_in(door.told(door.user(), creation()))
    client, _ = door.by_token(token)
    refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    requests = (creation(), renewal(token.hmac), expiry(token.hmac), description())
    assert [door.told(client, request).error_code for request in requests] == [refused] * 4
    anonymous = UnwiredClient(0)
    assert [door.told(anonymous, request).error_code for request in requests] == [refused] * 4


def test_without_a_key_tokens_are_disabled() -> None:
    door = Door()
    client = TokenDoor.user(door)  # type: ignore[arg-type]
    requests = (creation(), renewal(b"abc"), expiry(b"abc"), description())
    answers = [TokenDoor.told(door, client, request) for request in requests]  # type: ignore[arg-type]
    assert [answer.error_code for answer in answers] == [ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED] * 4


def test_a_token_is_renewed_by_its_owner_and_renewers_until_its_life_ends() -> None:
    door = TokenDoor()
    bob, eve = door.user(), door.user("eve")
    created = door.told(bob, creation(renewers=[EVE]))
    token = token_in(created)
    assert created.max_timestamp_ms - created.issue_timestamp_ms == LIFE_MS
    assert created.expiry_timestamp_ms - created.issue_timestamp_ms == RENEWED_MS
    times = []
    for number in range(7):
        door.pass_time(RENEWED_MS * 800)
        renewed = door.told((bob, eve)[number % 2], renewal(token.hmac))
        assert not renewed.error_code
        times.append(renewed.expiry_timestamp_ms)
    assert times == sorted(set(times)) and times[-1] == created.max_timestamp_ms > times[-2]
    door.pass_time(RENEWED_MS * 1000)
    assert door.told(bob, renewal(token.hmac)).error_code in (
        ErrorCode.DELEGATION_TOKEN_EXPIRED,
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
    )


def test_only_who_is_named_changes_a_token() -> None:
    door = TokenDoor({})
    bob, eve = door.user(), door.user("eve")
    token = token_in(door.told(bob, creation()))
    for request in (renewal(token.hmac), expiry(token.hmac)):
        assert door.told(eve, request).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert door.told(bob, renewal(b"abc")).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    ended = door.told(bob, expiry(token.hmac, 5_000))
    assert 4_000 < ended.expiry_timestamp_ms - door.now_ms <= 5_000
    door.pass_time(6 * SECOND_US)
    expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert door.told(bob, renewal(token.hmac)).error_code == expired
    assert door.told(bob, expiry(token.hmac, 5_000)).error_code == expired
    assert door.told(bob, expiry(token.hmac)).error_code == 0
    assert door.by_token(token)[1] is None


def test_tokens_have_a_limit() -> None:
    door = TokenDoor()
    bob, policy = door.user(), ErrorCode.POLICY_VIOLATION
    assert door.told(bob, creation(renewers=[EVE] * 11)).error_code == policy
    assert door.told(bob, creation(renewers=[("User", "x" * 251)])).error_code == policy
    for _ in range(2_000):
        door.cluster.tokens.create(Principal(*BOB), Principal(*BOB), (), -1)
    assert door.told(bob, creation()).error_code == policy
    door.wire.ask(bob, description([EVE] * 1001))
    assert bob.closed


# --- both clusters


def scenario(address: Address, admin: tuple[str, str], user: tuple[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield what a cluster answers to an administrator and to a user without rights."""

    def ask(who: tuple[str, str], request: Any) -> dict[str, Any]:
        with Client(address) as client:
            answer = client.plain(*who)
            assert not answer.error_code, answer
            answered: dict[str, Any] = comparable(
                client.send(request).to_dict(), {admin[0]: "ADMIN", user[0]: "USER"}
            )
            return answered

    def token_of(request: Any) -> Token:
        with Client(address) as client:
            client.plain(*user)
            created = token_in(client.send(request))
        wait_until(lambda: ask(user, renewal(created.hmac))["error_code"] == 0, "the token is known")
        return created

    def login(token: Token, mechanism: str = SCRAM, extension: str = ",tokenauth=true") -> Client:
        client, scram = Client(address), ScramClient(mechanism, token.id, token.password, extension)
        client.handshake(mechanism)
        answer = client.authenticate(scram.first)
        if not answer.error_code:
            answer = client.authenticate(scram.final(bytes(answer.auth_bytes)))
        logins.append((answer.error_code, answer.error_message))
        return client

    logins: list[tuple[int, str | None]] = []
    mine, other, group = ("User", user[0]), ("User", "x"), ("Group", "x")
    for version in (1, 2, 3):
        yield f"create v{version}", ask(user, creation(version, renewers=[other]))
    for label, who, request in (
        ("an owner without a type", user, creation(owner=(None, "x"))),
        ("an owner without a name", user, creation(owner=("User", ""))),
        ("an owner of another type", admin, creation(owner=group)),
        ("another owner", user, creation(owner=other)),
        ("another owner, by an administrator", admin, creation(owner=mine, life_ms=3_600_000)),
        ("a renewer of another type", user, creation(renewers=[group])),
        ("no life", user, creation(life_ms=0)),
        ("the longest life", user, creation(life_ms=2**63 - 1)),
        ("the shortest life", user, creation(life_ms=-(2**63))),
        ("nobody's tokens", user, description([])),
        ("a stranger's tokens", admin, description([("User", "nobody")])),
    ):
        yield label, ask(who, request)
    token = token_of(creation())
    for label, who, request in (
        ("renew for 1000 s", user, renewal(token.hmac, 1_000_000)),
        ("renew for ever", user, renewal(token.hmac, 2**63 - 1, 1)),
        ("renew another's", admin, renewal(token.hmac)),
        ("renew nothing", user, renewal(b"")),
        ("expire another's", admin, expiry(token.hmac)),
        ("expire in 500 s", user, expiry(token.hmac, 500_000, 1)),
        ("expire never", user, expiry(token.hmac, 2**63 - 1)),
        ("expire nothing", user, expiry(b"abc")),
    ):
        yield label, ask(who, request)

    def rows(version: int) -> list[dict[str, Any]]:
        described: list[dict[str, Any]] = ask(user, description([("User", user[0])], version))["tokens"]
        return described

    wait_until(
        lambda: min(row["expiry_timestamp"] for row in rows(1)) * DAY_MS > 2_000_000,
        "the broker knows that the token never expires",
    )
    for version in (1, 2, 3):
        yield f"describe v{version}", min(rows(version), key=repr)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        with login(token, mechanism) as client:
            for request in (creation(), renewal(token.hmac), expiry(token.hmac), description()):
                yield mechanism, comparable(client.send(request).to_dict(), {user[0]: "USER"})
    for extension in (",tokenauth=TRUE", ",tokenauth=false", ",TOKENAUTH=true", ""):
        login(token, extension=extension).connection.close()
    yield "logins", logins
    yield "expire now", ask(user, expiry(token.hmac))
    wait_until(lambda: ask(user, renewal(token.hmac))["error_code"] == 62, "the token is gone")
    login(token).connection.close()
    yield "login with a token that is gone", logins[-1]


def comparable(value: Any, names: dict[str, str]) -> Any:
    """Return an answer whose tokens and times are the cluster's own, and users are called as in the other.

    Times are told as days after the time that comes before them, if that is what they are.
    """
    if isinstance(value, list):
        return [comparable(item, names) for item in value]
    if not isinstance(value, dict):
        return names.get(value, value) if isinstance(value, str) else value
    issued = max(value.get("issue_timestamp_ms", 0), value.get("issue_timestamp", 0))
    out: dict[str, Any] = {}
    for name, field in value.items():
        if name in ("token_id", "hmac"):
            out[name] = bool(field)
        elif "timestamp" in name and field > 0:
            out[name] = (field - issued) / DAY_MS if issued else "a time"
        else:
            out[name] = comparable(field, names)
    return out


@pytest.mark.slow
def test_a_real_cluster_answers_the_same(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    java, jars = kafka_runtime
    with (
        SecuredServed(
            "sasl_plaintext:plain", "--no-traffic", "--brokers", "1", "--racks", "1", settings=(f"{KEY}=k",)
        ) as served,
        SecuredKafka(tmp_path_factory.mktemp("tokens"), java, jars, overrides={KEY: "k"}) as kafka,
    ):
        ours = scenario(served.addresses[0], (ADMIN, served.password()), (ALICE, served.password(ALICE)))
        real = scenario(kafka.address("SP"), (USER, PASSWORD), (NOBODY, NOBODYS_PASSWORD))
        assert list(ours) == list(real)
