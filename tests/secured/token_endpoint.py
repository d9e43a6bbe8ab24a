"""A token endpoint that gives unsigned tokens to one client."""

import base64
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

CLIENT_ID, CLIENT_SECRET = "kview", "se:cr%t ä"


class TokenEndpoint:
    """Listens on a loopback port until it is closed. Its tokens are valid for `lifetime_s`."""

    def __init__(self, lifetime_s: float = 3600.0) -> None:
        self.lifetime_s = lifetime_s
        self.fixed = ""
        """The token that it gives, '' for one of its own."""
        self.forms: list[dict[str, str]] = []
        """What each client asked for that was accepted."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if self.headers["Authorization"] != outer.authorization:
                    self.answer(401, {"error": "invalid_client"})
                    return
                outer.forms.append(dict(urllib.parse.parse_qsl(form)))
                self.answer(
                    200, {"access_token": outer.fixed or outer.token(), "expires_in": outer.lifetime_s}
                )

            def answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: the test's output is not an access log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/token"

    @property
    def authorization(self) -> str:
        """The header that the client must send (RFC 6749, section 2.3.1)."""
        words = f"{urllib.parse.quote_plus(CLIENT_ID)}:{urllib.parse.quote_plus(CLIENT_SECRET)}"
        return "Basic " + base64.b64encode(words.encode()).decode()

    def token(self) -> str:
        now_s = int(time.time())
        claims = {"sub": "kview", "iat": now_s, "exp": now_s + int(self.lifetime_s)}
        return f"{_part({'alg': 'none'})}.{_part(claims)}."

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _part(values: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")
