"""`kview serve --http`: the cluster over HTTP, who may ask it, and the examples of its help."""

import http.client
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import msgspec
import pytest
from confluent_kafka import Producer

from kview.errors import BadUse
from kview.lab.commands import parse
from kview.language.commands import example
from kview.model.address import Address
from kview.model.lab import CommandKind
from kview.testing.routes import ROUTES, command_of, openapi
from tests.cli.commands import run_here
from tests.served import kview_command, kview_environment
from tests.waiting import wait_until

WAIT_S = 30.0
SMALL = ("--empty", "--brokers", "3", "--racks", "1", "--set", "group.initial.rebalance.delay.ms=0")
EXAMPLES = files("kview.testing") / "examples"


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]


class Served:
    """`kview serve --http 0`, as a program in another language has it."""

    def __init__(self, *flags: str, token: str | None = None) -> None:
        given = {} if token is None else {"KVIEW_HTTP_TOKEN": token}
        self.process = subprocess.Popen(
            kview_command("serve", *SMALL, "--http", "0", *flags),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**kview_environment(), **given},
        )
        assert self.process.stdout is not None
        self.printed: dict[str, str] = {}
        while "http.token" not in self.printed and not (token and "http.url" in self.printed):
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            self.printed.update([line.strip().split("=", 1)])  # type: ignore[list-item]
        self.token = token or self.printed["http.token"]
        self.address = Address.parse(self.printed["http.url"].removeprefix("http://"))

    def ask(self, method: str, path: str, body: Any = None, /, **headers: str) -> Answer:
        """Send a request with the token, and what else is in its head: `Host=…`."""
        connection = http.client.HTTPConnection(*self.address, timeout=WAIT_S)
        sent = body if isinstance(body, str | None) else json.dumps(body)
        try:
            connection.request(method, path, sent, {"Authorization": f"Bearer {self.token}", **headers})
            answer = connection.getresponse()
            read = answer.read()
            return Answer(answer.status, json.loads(read) if read else None, dict(answer.headers))
        finally:
            connection.close()

    def done(self, method: str, path: str, body: Any = None, /) -> Any:
        """The body of an answer that is as the description says."""
        answer = self.ask(method, path, body)
        assert answer.status == 200, answer
        assert answer.headers["Content-Type"] == "application/json"
        route = next(each for each in ROUTES if each.method == method and each.path == path)
        schema = DESCRIPTION["paths"][route.path][method.lower()]["responses"]["200"]["content"]
        jsonschema.validate(
            answer.body, {**schema["application/json"]["schema"], "components": DESCRIPTION["components"]}
        )
        return answer.body

    def type(self, line: str) -> None:
        """Give a line to the console, and wait for its answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline()

    def end(self) -> str:
        """End it, and return what it has printed besides."""
        self.process.terminate()
        return "".join(self.process.communicate(timeout=WAIT_S))


DESCRIPTION = openapi()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    running = Served()
    yield running
    running.end()


def test_a_test_of_a_leader_that_crashes(served: Served) -> None:
    bootstrap = served.done("GET", "/bootstrap")
    assert bootstrap["bootstrap_servers"] == served.printed["bootstrap.servers"]
    assert [each["id"] for each in bootstrap["brokers"]] == [0, 1, 2]
    topic = served.done(
        "POST", "/topics", {"name": "orders", "unique": True, "settings": {"retention.ms": "9"}}
    )
    name = topic["name"]
    first = served.ask("GET", f"/topics/{name}").body["partitions"][0]["leader"]
    outcome = served.done("POST", "/commands", f"crash {first}")
    assert outcome["said"].startswith(f"broker {first} was killed")
    assert outcome["reply"]["undone_by"]["kind"] == "start"
    served.done("POST", "/commands", {"kind": "fence-now", "node": first})
    second = served.done("POST", "/wait/leader", {"topic": name, "other_than": first})["leader"]
    assert second in {0, 1, 2} - {first}
    assert served.done("GET", "/status")["active"][0]["state"] == "crashed"
    client = Producer(bootstrap["librdkafka_conf"])
    client.produce(name, b"1")
    assert client.flush(20) == 0
    requests = served.ask("GET", f"/requests?api=Produce&topic={name}").body["requests"]
    assert [each["batches"][0]["records"] for each in requests] == [1]
    assert served.ask("GET", "/requests?topic=other").body["requests"] == []
    group = served.done("POST", "/groups", {"name": "readers"})["name"]
    assert group.startswith("readers-")
    assert served.done("GET", "/counters")["counters"]
    assert served.done("GET", "/settings")["topics"]
    assert served.done("POST", "/heal", {"within_s": 60})["healthy"]
    assert served.done("POST", "/wait/full-isr")["healthy"]
    assert served.ask("GET", f"/topics/{name}").status == 409
    served.done("GET", "/requests")
    assert served.ask("DELETE", "/requests").body == {}
    ahead = served.done("POST", "/commands", "advance 90m")
    assert ahead["said"] == "1 h 30 m have passed for the cluster"
    assert served.done("GET", "/") == json.loads(json.dumps(DESCRIPTION))


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "says"),
    [
        ("GET", "/status", None, {"Authorization": ""}, 401, "Authorization: Bearer TOKEN"),
        ("GET", "/status", None, {"Authorization": "Bearer x"}, 401, "send the token"),
        ("POST", "/quit", None, {"Authorization": "Basic eDp5"}, 401, "send the token"),
        ("GET", "/nowhere", None, {"Authorization": ""}, 401, "send the token"),
        ("GET", "/status", None, {"Origin": "https://example.com"}, 403, "pages in browsers are refused"),
        ("GET", "/status", None, {"Origin": "null"}, 403, "pages in browsers are refused"),
        ("GET", "/status", None, {"Host": "rebound.example:80"}, 403, "this is another host"),
        ("GET", "/status", None, {"Host": "127.0.0.1.example"}, 403, "this is another host"),
        ("GET", "/status", None, {"Host": ""}, 403, "this is another host"),
        ("GET", "/status", None, {"Host": "[::1"}, 403, "this is another host"),
        ("GET", "/status", None, {"Host": "LOCALHOST:1"}, 200, ""),
        ("GET", "/status", None, {"Host": "[::1]:1"}, 200, ""),
        ("GET", "/nowhere", None, {}, 404, "there is no /nowhere"),
        ("GET", "/topics/", None, {}, 404, "there is no /topics/"),
        ("DELETE", "/status", None, {}, 405, "/status takes GET"),
        ("GET", "http://[/x", None, {"Host": "localhost"}, 400, "not understood"),
        ("BREW", "/requests", None, {}, 405, "/requests takes GET, DELETE"),
        ("GET", "/status?x=1", None, {}, 400, "not understood"),
        ("POST", "/commands", "", {}, 400, "unknown command ''"),
        ("POST", "/commands", "crahs 1", {}, 400, "did you mean crash?"),
        ("POST", "/commands", "x" * 5000, {}, 400, "4096 bytes"),
        ("POST", "/commands", "crash\xff".encode("latin-1"), {}, 400, "not understood"),
        ("POST", "/commands", {"kind": "explode"}, {}, 400, "not understood"),
        ("POST", "/commands", {"kind": "crash", "node": 99}, {}, 409, "there is no node 99"),
        ("POST", "/commands", {"kind": "fail", "name": "Fetch", "key": "x"}, {}, 400, "x"),
        ("POST", "/commands", {"kind": "slow", "node": 1, "amount": 1e300}, {}, 400, "not a valid latency"),
        ("POST", "/commands", {"kind": "advance", "amount": -5}, {}, 400, "time"),
        ("POST", "/commands", "start 1", {}, 409, "nothing to start"),
        ("POST", "/topics", {"name": "a b"}, {}, 409, "was not created"),
        ("POST", "/topics", {"name": "a", "partitions": 2**40}, {}, 400, "not understood"),
        ("POST", "/topics", {"nam": "a"}, {}, 400, "unknown field `nam`"),
        ("POST", "/topics", "[" * 30_000, {}, 400, "not understood"),
        ("GET", "/topics/none", None, {}, 409, "there is no topic 'none'"),
        ("POST", "/wait/full-isr", {"within_s": 301}, {}, 400, "not understood"),
        (
            "POST",
            "/wait/leader",
            {"topic": "none", "other_than": 1, "within_s": 0},
            {},
            409,
            "no partition 0",
        ),
        ("POST", "/heal", "x" * 65_537, {}, 413, "at most 65536 bytes"),
        ("POST", "/heal", "", {"Content-Length": "-1"}, 413, "at most 65536 bytes"),
        ("POST", "/heal", "", {"Transfer-Encoding": "chunked"}, 411, "not in chunks"),
    ],
)
def test_what_is_refused_is_said_and_changes_nothing(
    served: Served,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
    status: int,
    says: str,
) -> None:
    sent = body.decode("latin-1") if isinstance(body, bytes) else body
    answer = served.ask(method, path, sent, **headers)
    assert answer.status == status, answer
    if status != 200:
        assert says in answer.body["error"]
        jsonschema.validate(answer.body, {**DESCRIPTION["components"]["schemas"]["Failure"]})
    assert str(status) in DESCRIPTION["paths"]["/status"]["get"]["responses"]
    if status == 405:
        assert answer.headers["Allow"] in says
    assert served.token not in json.dumps(answer.body) + str(answer.headers)


def test_what_is_waited_for_and_does_not_happen_is_a_timeout(served: Served) -> None:
    served.type("crash 1")  # which POST /heal heals, too
    answer = served.ask("POST", "/wait/full-isr", {"within_s": 0.05})
    assert (answer.status, answer.body) == (
        504, {"error": "not within 0.05 s: every broker is back and every ISR full"},
    )  # fmt: skip
    assert served.done("POST", "/heal")["healthy"]


def test_clients_that_wait_keep_nobody_out_and_end_when_they_are_gone(served: Served) -> None:
    served.ask("POST", "/commands", "hang 101")
    body = b'{"within_s": 300}'
    head = f"POST /wait/full-isr HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.token}\r\n"
    waiting = [socket.create_connection(served.address) for _ in range(80)]

    def status() -> int:
        return served.ask("POST", "/wait/full-isr", {"within_s": 0}).status

    for each in waiting:
        each.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    wait_until(lambda: status() == 503, "too many wait")
    assert served.ask("GET", "/status").status == 200
    for each in waiting:
        each.close()
    wait_until(lambda: status() == 504, "nobody waits any more")
    assert served.done("POST", "/heal")["healthy"]


def test_clients_that_send_nothing_or_half_a_request_keep_nobody_out(served: Served) -> None:
    silent = [socket.create_connection(served.address) for _ in range(80)]
    for each in silent[:40]:
        each.sendall(b"POST /commands HTTP/1.1\r\nContent-Length: 100\r\n")
    try:
        assert served.ask("GET", "/status").status == 200
    finally:
        for each in silent:
            each.close()


def test_a_secured_cluster_with_a_given_token_which_is_never_printed(tmp_path: Path) -> None:
    token = "only-tests-know-this-one"
    running = Served("--security", "sasl_plaintext", token=token)
    try:
        users = running.done("GET", "/bootstrap")["users"]
        assert set(users) == {"admin", "alice"}
        assert users["alice"]["librdkafka_conf"]["sasl.username"] == "alice"
        running.done("POST", "/topics", {"name": "orders"})
        assert running.ask("GET", "/topics/orders").body["partitions"]
        assert running.done("POST", "/quit") == {}
        assert running.process.wait(WAIT_S) == 0
    finally:
        assert token not in str(running.printed) + running.end()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--http", "192.0.2.1:0"], "HTTP cannot be served on 192.0.2.1:0"),
        (["--http", "x" * 70 + ":1"], "not a host name"),
        (["--http", "high"], "'high' in '127.0.0.1:high' is not a valid port"),
        (["--http", "70000"], "'70000' in '127.0.0.1:70000' is not a valid port"),
        (["--http-token-file", "/nowhere", "--http", "0"], "does not exist"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_2(flags: list[str], says: str) -> None:
    ended = run_here("serve", *SMALL, *flags)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert says in ended.stderr and "Traceback" not in ended.stderr


@pytest.mark.parametrize("text", ["short", "with spaces in it it is none", ""])
def test_a_token_is_long_and_has_no_spaces(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    ended = run_here("serve", *SMALL, "--http", "0", "--http-token-file", str(file))
    assert ended.returncode == 2 and f"{file} is not a valid token" in ended.stderr
    assert not text or text not in ended.stderr.replace(str(file), "")


@pytest.mark.parametrize("kind", CommandKind)
def test_every_command_is_taken_as_a_line_and_as_json(kind: CommandKind) -> None:
    line = example(kind)
    command = parse(line)
    assert command_of(line.encode()) == command_of(msgspec.json.encode(command)) == command


def test_json_may_have_names_with_spaces_and_errors_by_name() -> None:
    assert command_of(b'{"kind": "record", "name": "/tmp/a b"}').name == "/tmp/a b"
    named = b'{"kind": "fail", "name": "Fetch", "key": "NOT_LEADER_OR_FOLLOWER"}'
    assert command_of(named) == parse("fail Fetch NOT_LEADER_OR_FOLLOWER all")
    with pytest.raises(BadUse):
        command_of(b'{"kind": "crash"}')


def test_the_description_is_printed_and_has_every_request() -> None:
    printed = json.loads(run_here("schema", "--http").stdout)
    assert printed == json.loads(json.dumps(DESCRIPTION))
    assert {(method.upper(), path) for path, methods in printed["paths"].items() for method in methods} == {
        (route.method, route.path) for route in ROUTES
    }
    jsonschema.Draft202012Validator.check_schema(printed["components"]["schemas"]["Status"])


def test_the_examples_are_in_the_help() -> None:
    said = run_here("serve", "--help-http").stdout
    for name in ("curl.sh", "Failover.java", "failover.go", "failover.mjs"):
        assert (EXAMPLES / name).read_text() in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("needs", "command"),
    [
        ("javac", ["java", "Failover.java"]),
        ("go", ["go", "run", "failover.go"]),
        ("node", ["node", "failover.mjs"]),
        ("curl", ["sh", "-e", "curl.sh"]),
    ],
)
def test_an_example_works(needs: str, command: list[str]) -> None:
    """Not every machine has every compiler, also not those that must have everything else."""
    if shutil.which(needs) is None:
        pytest.skip(f"this machine has no {needs}")
    running = Served()
    try:
        done = subprocess.run(
            command,
            cwd=str(EXAMPLES),
            env={
                **os.environ,
                "KVIEW_HTTP_URL": running.printed["http.url"],
                "KVIEW_HTTP_TOKEN": running.token,
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if needs != "curl":
            first, second = done.stdout.strip().split(" -> ")
            assert first != second
    finally:
        running.end()
