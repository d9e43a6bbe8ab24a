"""OAuth tokens: when they are fetched again, and what happens if the endpoint gives none."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kview.config.secret import Secret
from kview.config.security import OAuth
from kview.observe.loop import Loop
from kview.observe.tokens import ClientRefused, NoToken, Tokens, fetch
from tests.clocks import SetClock
from tests.secured.token_endpoint import CLIENT_ID, CLIENT_SECRET, TokenEndpoint
from tests.waiting import wait_until


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[ThreadingHTTPServer]:
    """A web server on a loopback port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def releasing(event: threading.Event) -> Iterator[None]:
    """Let everything go on at the end that waits for the event."""
    try:
        yield
    finally:
        event.set()


def fresh(loop: Loop, tokens: Tokens) -> Callable[[], str]:
    """What a login does: it waits for a token, and takes it."""

    def take() -> str:
        loop.run(lambda: tokens.fresh(loop))
        return tokens.token()

    return take


def test_a_token_is_fetched_again_at_most_of_its_lifetime_and_used_up_if_there_is_no_other(
    loop: Loop,
) -> None:
    clock = SetClock()
    with TokenEndpoint(lifetime_s=100.0) as endpoint:
        oauth = OAuth(endpoint.url, CLIENT_ID, Secret(CLIENT_SECRET))
        take = fresh(loop, Tokens(oauth, ssl.create_default_context(), clock))
        first = take()
        clock.now_s += 79
        assert take() == first
        assert len(endpoint.forms) == 1
        clock.now_s += 2
        second = take()
        assert len(endpoint.forms) == 2
    clock.now_s += 99
    assert take() == second
    clock.now_s += 2
    with pytest.raises(NoToken):
        take()


def test_the_client_secret_goes_to_no_address_to_which_the_endpoint_redirects() -> None:
    seen: list[str | None] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_error(HTTPStatus.UNAUTHORIZED)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's output is not an access log."""

    class Redirecting(Other):
        def do_POST(self) -> None:
            self.send_response(HTTPStatus.FOUND)
            self.send_header("Location", f"http://localhost:{other.server_port}/")
            self.end_headers()

    with serving(Other) as other, serving(Redirecting) as endpoint:
        oauth = OAuth(f"http://127.0.0.1:{endpoint.server_port}/", CLIENT_ID, Secret(CLIENT_SECRET))
        with pytest.raises(ClientRefused):
            fetch(oauth, ssl.create_default_context())
    assert seen == [None]


@pytest.mark.parametrize("lifetime", ["NaN", "1e999", "1" + 400 * "0", "[1]"])
def test_an_endless_lifetime_is_not_believed(lifetime: str) -> None:
    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(f'{{"access_token": "t", "expires_in": {lifetime}}}'.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's output is not an access log."""

    with serving(Endpoint) as endpoint:
        oauth = OAuth(f"http://127.0.0.1:{endpoint.server_port}/", CLIENT_ID, Secret(CLIENT_SECRET))
        with pytest.raises(NoToken):
            fetch(oauth, ssl.create_default_context())


def test_a_valid_token_does_not_wait_for_an_endpoint_that_hangs(loop: Loop) -> None:
    """While a login is renewed, its broker gets no requests, and would soon count as silent."""
    clock, hangs, over = SetClock(), threading.Event(), threading.Event()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if hangs.is_set():
                over.wait()
                return
            self.send_response(HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(b'{"access_token": "first", "expires_in": 100}')

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's output is not an access log."""

    with serving(Endpoint) as endpoint, releasing(over):
        url = f"http://127.0.0.1:{endpoint.server_port}/"
        oauth = OAuth(url, CLIENT_ID, Secret(CLIENT_SECRET))
        tokens = Tokens(oauth, ssl.create_default_context(), clock)
        take = fresh(loop, tokens)
        take()
        hangs.set()
        clock.now_s += 90
        assert take() == "first"
        assert "token" in [thread.name for thread in threading.enumerate()], "the other one is still awaited"


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_ends_after_the_loop_is_not_a_bug_in_the_log() -> None:
    loop, over = Loop(lambda: 0, SetClock()), threading.Event()
    loop.start()

    async def begin() -> None:
        loop.begin(lambda: loop.in_thread(over.wait, "late"))

    loop.run(begin)
    late = wait_until(
        lambda: next((t for t in threading.enumerate() if t.name == "late"), None), "the work has begun"
    )
    assert late is not None
    loop.stop()
    over.set()
    late.join()
