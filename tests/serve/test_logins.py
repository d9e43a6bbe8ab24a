"""Logins with SASL: what a broker admits before, during and after one, and the users of SCRAM."""

import base64
import hashlib
import hmac
import random
from struct import pack
from typing import Any

import pytest
from kafka.protocol.admin import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from kview.config.secret import Secret
from kview.serve.login import TOKEN_BYTES_MAX, Login, Logins
from kview.simulate.scram import ScramMechanism
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import cluster_of

PASSWORD = "xyzzy-1f3a"
SECOND_US = 1_000_000
SHA_256, SHA_512 = 1, 2
WRONG_SCRAM = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"


class Door:
    """A broker with a login, and clients of it."""

    def __init__(self, session_ms: int = 0) -> None:
        self.wire = Unwired(cluster_of())
        self.cluster = self.wire.cluster
        passwords = {"bob": Secret(PASSWORD), "eve": Secret("other")}
        self._logins = Logins(passwords, session_ms * 1000)

    def client(self) -> UnwiredClient:
        client = UnwiredClient(0)
        client.login = Login(self._logins, lambda: self.cluster.image(0), lambda: self.cluster.kernel.now_us)
        return client

    def ask(self, client: UnwiredClient, request: Any, response: Any = None) -> Any:
        """Return the answer to a request, or None if there is none yet."""
        before = len(client.answers)
        self.wire.ask(client, request)
        return self.last(client, before, request, response)

    def last(self, client: UnwiredClient, before: int, request: Any, response: Any) -> Any:
        if len(client.answers) == before:
            return None
        frame = client.answers[-1]
        assert frame is not None
        return request.header.get_response_class().decode(frame[4:], header=True)

    def handshake(self, client: UnwiredClient, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(client, SaslHandshakeRequest(version=version, mechanism=mechanism))

    def authenticate(self, client: UnwiredClient, token: bytes, version: int = 2) -> Any:
        return self.ask(client, SaslAuthenticateRequest(version=version, auth_bytes=token))

    def plain(self, client: UnwiredClient, user: str = "bob", password: str = PASSWORD) -> Any:
        self.handshake(client)
        return self.authenticate(client, f"\0{user}\0{password}".encode())

    def delayed(self, client: UnwiredClient, response: Any, version: int) -> Any:
        """Return the answer that comes after the delay of a refusal, and not before."""
        before = len(client.answers)
        self.pass_time(99_000)
        assert len(client.answers) == before and not client.closed
        self.pass_time(2_000)
        assert client.closed
        frame = client.answers[-1]
        assert frame is not None
        flexible = response is SaslAuthenticateResponse and version >= 2
        return response.decode(frame[8 + flexible :], version=version)

    def pass_time(self, microseconds: int) -> None:
        self.cluster.run_until(self.cluster.kernel.now_us + microseconds)

    def new_user(self, name: str, mechanism: int, password: str = PASSWORD, iterations: int = 4096) -> int:
        """Return the error of adding a user of SCRAM, as bob."""
        client = self.client()
        self.plain(client)
        salt = b"some salt"
        name_of_hash = {SHA_256: "sha256", SHA_512: "sha512"}.get(mechanism, "sha256")
        hidden = hashlib.pbkdf2_hmac(name_of_hash, password.encode(), salt, max(1, iterations))
        upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            version=0,
            name=name,
            mechanism=mechanism,
            iterations=iterations,
            salt=salt,
            salted_password=hidden,
        )
        return self.alter(client, [], [upsertion])[name][0]

    def alter(
        self, client: UnwiredClient, deletions: list[Any], upsertions: list[Any]
    ) -> dict[str, tuple[int, str | None]]:
        request = AlterUserScramCredentialsRequest(version=0, deletions=deletions, upsertions=upsertions)
        before = len(client.answers)
        self.wire.ask(client, request)
        self.pass_time(SECOND_US)
        answer: AlterUserScramCredentialsResponse = self.last(client, before, request, None)
        return {row.user: (row.error_code, row.error_message) for row in answer.results}


class ScramClient:
    """The client's side of SCRAM, by RFC 5802."""

    def __init__(self, mechanism: str, user: str, password: str = PASSWORD, extensions: str = "") -> None:
        self.hash = "sha256" if mechanism.endswith("256") else "sha512"
        self.password = password
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r=abcdef{extensions}"

    @property
    def first(self) -> bytes:
        return f"n,,{self.bare}".encode()

    def final(self, answer: bytes, nonce: str = "") -> bytes:
        fields = dict(field.split("=", 1) for field in answer.decode().split(","))
        self.salted = hashlib.pbkdf2_hmac(
            self.hash, self.password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        without = f"c=biws,r={nonce or fields['r']}"
        self.exchanged = f"{self.bare},{answer.decode()},{without}".encode()
        key = hmac.digest(self.salted, b"Client Key", self.hash)
        signature = hmac.digest(hashlib.new(self.hash, key).digest(), self.exchanged, self.hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()

    def signature(self) -> bytes:
        """What the server must answer, which shows that it knows the user."""
        key = hmac.digest(self.salted, b"Server Key", self.hash)
        return b"v=" + base64.b64encode(hmac.digest(key, self.exchanged, self.hash))


def metadata() -> Any:
    return MetadataRequest(version=12, topics=None, allow_auto_topic_creation=False)


def api_versions() -> Any:
    return ApiVersionsRequest(version=3, client_software_name="tests", client_software_version="1")


def test_before_a_login_only_api_versions_is_answered_once() -> None:
    door = Door()
    client = door.client()
    assert door.ask(client, api_versions()).error_code == 0
    door.ask(client, api_versions())
    assert client.closed
    other = door.client()
    assert door.ask(other, metadata()) is None and other.closed


def test_plain_lets_a_user_in_and_says_who_it_is() -> None:
    door = Door()
    client = door.client()
    door.ask(client, api_versions())
    assert (door.handshake(client).error_code, door.plain(door.client()).error_code) == (0, 0)
    answer = door.authenticate(client, f"\0bob\0{PASSWORD}".encode())
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert client.login is not None and client.login.principal == "User:bob"
    assert door.ask(client, metadata()).topics
    assert door.handshake(client).error_code == 34
    again = door.authenticate(client, b"")
    assert (again.error_code, again.error_message) == (
        34,
        "SaslAuthenticate request received after successful authentication",
    )


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0bob\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"eve\0bob\0" + PASSWORD.encode(),
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"bob", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0bob\0", "Authentication failed: password not specified"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0\xff\0\xff", "Authentication failed: Invalid username or password"),
    ],
)
def test_a_wrong_login_with_plain_is_refused_after_a_delay(token: bytes, message: str) -> None:
    door = Door()
    client = door.client()
    door.handshake(client)
    assert door.authenticate(client, token) is None
    answer = door.delayed(client, SaslAuthenticateResponse, 2)
    assert (answer.error_code, answer.error_message) == (58, message)
    assert client.login is not None and client.login.principal == "User:ANONYMOUS"


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    door = Door()
    client = door.client()
    assert door.handshake(client, "GSSAPI") is None
    answer = door.delayed(client, SaslHandshakeResponse, 1)
    assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])


def test_after_the_first_version_of_the_handshake_tokens_come_without_headers() -> None:
    door = Door()
    client = door.client()
    assert door.handshake(client, version=0).error_code == 0
    door.wire.send(client, f"\0bob\0{PASSWORD}".encode())
    assert client.answers[-1] == pack(">i", 0)
    assert door.ask(client, metadata()).topics
    other = door.client()
    door.handshake(other, version=0)
    door.wire.send(other, b"\0bob\0wrong")
    door.pass_time(99_000)
    assert not other.closed and len(other.answers) == 1, "guesses are as slow as with the next version"
    door.pass_time(2_000)
    assert other.closed and other.answers[1:] == [b""]


def test_versions_of_a_later_version_are_refused_during_a_login() -> None:
    door = Door()
    client = door.client()
    door.handshake(client)
    door.wire.send(client, pack(">hhih", 18, 99, 7, -1))
    assert door.delayed(client, ApiVersionsResponse, 0).error_code == 34


def test_a_login_that_is_held_counts_for_longer() -> None:
    door = Door(session_ms=5_000)
    client = door.client()
    door.plain(client)
    assert client.login is not None
    client.login.hold(60 * SECOND_US)
    door.pass_time(64 * SECOND_US)
    assert door.ask(client, metadata()).topics
    door.pass_time(2 * SECOND_US)
    assert door.ask(client, metadata()) is None and client.closed


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", ["carol", "a=b,c"])
def test_scram_proves_both_sides(mechanism: str, user: str) -> None:
    door = Door()
    assert door.new_user(user, SHA_256 if mechanism.endswith("256") else SHA_512) == 0
    scram, client = ScramClient(mechanism, user), door.client()
    door.handshake(client, mechanism)
    first = door.authenticate(client, scram.first)
    assert (first.error_code, first.session_lifetime_ms) == (0, 0)
    last = door.authenticate(client, scram.final(first.auth_bytes))
    assert (last.error_code, last.auth_bytes) == (0, scram.signature())
    assert client.login is not None and client.login.principal == f"User:{user}"


def test_wrong_logins_with_scram_look_alike() -> None:
    door = Door()
    door.new_user("carol", SHA_256)
    for user, password, nonce in (
        ("nobody", PASSWORD, ""),
        ("carol", "wrong", ""),
        ("carol", PASSWORD, "abcdefabcdef"),
    ):
        scram, client = ScramClient("SCRAM-SHA-256", user, password), door.client()
        door.handshake(client, "SCRAM-SHA-256")
        first = door.authenticate(client, scram.first)
        if first is not None:
            assert door.authenticate(client, scram.final(first.auth_bytes, nonce)) is None
        answer = door.delayed(client, SaslAuthenticateResponse, 2)
        assert (answer.error_code, answer.error_message) == (58, WRONG_SCRAM.format("SCRAM-SHA-256"))


@pytest.mark.parametrize("token", [b"", b"n,,n=carol", b"y,,n=carol,r=a", b"n,,n=\xc3\xa9,r=a", b"\0" * 99])
def test_broken_tokens_of_scram_are_refused(token: bytes) -> None:
    door = Door()
    door.new_user("carol", SHA_256)
    client = door.client()
    door.handshake(client, "SCRAM-SHA-256")
    assert door.authenticate(client, token) is None
    assert door.delayed(client, SaslAuthenticateResponse, 2).error_code == 58


def test_a_session_ends_unless_its_login_is_renewed() -> None:
    door = Door(session_ms=5_000)
    client = door.client()
    assert door.plain(client).session_lifetime_ms == 5_000
    door.pass_time(4 * SECOND_US)
    assert door.plain(client).session_lifetime_ms == 5_000
    assert door.handshake(client).error_code == 34, "not twice in a second"
    door.pass_time(4 * SECOND_US)
    assert door.ask(client, metadata()).topics
    door.pass_time(2 * SECOND_US)
    assert door.ask(client, metadata()) is None and client.closed


def test_a_renewal_is_by_the_same_user_with_the_same_mechanism() -> None:
    door = Door(session_ms=5_000)
    client = door.client()
    door.plain(client)
    door.pass_time(2 * SECOND_US)
    assert door.plain(client, "eve", "other") is None
    answer = door.delayed(client, SaslAuthenticateResponse, 2)
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.bob: User.eve"
    )
    other = door.client()
    door.plain(other)
    door.pass_time(2 * SECOND_US)
    assert door.handshake(other, "SCRAM-SHA-256").error_code == 0
    assert door.authenticate(other, b"n,,n=bob,r=a") is None
    assert "not supported for re-authentication of mechanism 'PLAIN'" in (
        door.delayed(other, SaslAuthenticateResponse, 2).error_message
    )


@pytest.mark.parametrize(
    ("name", "mechanism", "iterations", "error"),
    [
        ("", SHA_256, 4096, 93),
        ("carol", 0, 4096, 33),
        ("carol", SHA_256, 4095, 93),
        ("c", SHA_256, 16385, 93),
    ],
)
def test_wrong_users_of_scram_are_refused(name: str, mechanism: int, iterations: int, error: int) -> None:
    door = Door()
    assert door.new_user(name, mechanism, iterations=iterations) == error
    assert not door.cluster.metadata.image.scram


def test_users_are_described_and_deleted_and_survive_another_controller() -> None:
    door = Door()
    for user in ("carol", "dave"):
        door.new_user(user, SHA_256)
    door.new_user("carol", SHA_512, iterations=5000)
    door.cluster.faults.crash_controller()
    door.pass_time(20 * SECOND_US)
    client = door.client()
    door.plain(client)
    assert described(door, client, None) == {
        "carol": (0, [(SHA_256, 4096), (SHA_512, 5000)]),
        "dave": (0, [(SHA_256, 4096)]),
    }
    assert described(door, client, ["carol", "nobody", "dave", "dave"]) == {
        "carol": (0, [(SHA_256, 4096), (SHA_512, 5000)]),
        "nobody": (91, []),
        "dave": (92, []),
    }
    deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    gone = [deletion(version=0, name=name, mechanism=SHA_256) for name in ("carol", "nobody")]
    twice = [deletion(version=0, name="dave", mechanism=SHA_256)] * 2
    results = door.alter(client, [*gone, *twice], [])
    assert {name: code for name, (code, _) in results.items()} == {"carol": 0, "nobody": 91, "dave": 92}
    assert set(door.cluster.metadata.image.scram) == {
        ("carol", ScramMechanism.SHA_512),
        ("dave", ScramMechanism.SHA_256),
    }


def described(
    door: Door, client: UnwiredClient, names: list[str] | None
) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    per_user = DescribeUserScramCredentialsRequest.UserName
    users = None if names is None else [per_user(version=0, name=name) for name in names]
    answer: DescribeUserScramCredentialsResponse = door.ask(
        client, DescribeUserScramCredentialsRequest(version=0, users=users)
    )
    return {
        row.user: (row.error_code, [(info.mechanism, info.iterations) for info in row.credential_infos])
        for row in answer.results
    }


def test_frames_before_a_login_are_small() -> None:
    door = Door()
    client = door.client()
    assert client.login is not None and client.login.largest_frame == TOKEN_BYTES_MAX == 524_288
    door.plain(client)
    assert client.login.largest_frame is None


@pytest.mark.parametrize("seed", range(40))
def test_no_frame_fails_before_a_login(seed: int) -> None:
    source, door = random.Random(seed), Door()
    door.new_user("carol", SHA_256)
    for _ in range(20):
        client = door.client()
        for _ in range(4):
            if client.closed or client.busy:
                break
            kind = source.randrange(4)
            if kind == 0:
                door.wire.send(client, source.randbytes(source.choice((0, 1, 2, 7, 8, 40))))
            elif kind == 1:
                key = source.choice((17, 18, 36))
                header = pack(">hhih", key, source.choice((-1, 0, 1, 2, 99)), 7, -1)
                door.wire.send(client, header + source.randbytes(source.randrange(12)))
            elif kind == 2:
                mechanism = source.choice(("PLAIN", "SCRAM-SHA-256", "", "x" * 9_000))
                door.handshake(client, mechanism, source.choice((0, 1)))
            else:
                token = source.choice(
                    (b"", b"\0" * 9, b"n,,n=carol,r=a", b"c=biws,r=a,p=", source.randbytes(50))
                )
                door.authenticate(client, token, source.choice((0, 1, 2)))
        door.pass_time(200_000)
        assert client.failures == []
        assert client.login is not None and client.login.principal == "User:ANONYMOUS"
    assert door.wire.event_failures == []
    assert door.plain(door.client()).error_code == 0
