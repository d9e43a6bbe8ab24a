"""A cluster that cannot be reached: its sentence on standard error, exit code 3, no traceback."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from tests.cli.commands import run_here, run_kview
from tests.e2e.pseudo_terminal import kview_on_a_terminal


@contextmanager
def nobody() -> Iterator[str]:
    """A port that refuses."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def somebody_silent() -> Iterator[str]:
    """A port that accepts and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def a_web_server() -> Iterator[str]:
    """A port that speaks HTTP."""

    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's output is not an access log."""

    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


TARGETS = (nobody, somebody_silent, a_web_server)


def test_each_kind_has_a_sentence_of_its_own() -> None:
    said = set()
    for kind in TARGETS:
        with kind() as server:
            done = run_kview("connect", server)
        assert done.returncode == 3, done.stderr
        assert server in done.stderr and done.stderr.startswith("kview: ")
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        said.add(done.stderr.replace(server, "HOST:PORT"))
    assert len(said) == len(TARGETS)


def test_on_a_terminal_it_is_said_after_the_dashboard_has_gone() -> None:
    with nobody() as server, kview_on_a_terminal("connect", server) as terminal:
        assert terminal.wait_for_end() == 3
        _, left, after = bytes(terminal.raw).rpartition(b"\x1b[?1049l")
        assert left and re.search(rf"kview: .*{server}", after.decode(), re.DOTALL)
        assert b"Traceback" not in terminal.raw


def test_a_name_that_does_not_exist() -> None:
    done = run_here("connect", "no-such-host.invalid:9092")
    assert done.returncode == 3
    assert "no-such-host.invalid:9092" in done.stderr
