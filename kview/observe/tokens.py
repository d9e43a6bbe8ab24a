"""OAuth tokens for the login at brokers, fetched for client credentials (RFC 6749, section 4.4)."""

import base64
import json
import logging
import math
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka.net.sasl.oauth import AbstractTokenProvider
from msgspec import Struct
from msgspec.structs import replace

from kview.config.secret import Secret
from kview.config.security import OAuth

if TYPE_CHECKING:
    from kview.observe.loop import Loop

_log = logging.getLogger(__name__)

RENEWED_AT = 0.8
"""The share of a token's lifetime after which another one is fetched. Brokers ask for a new login at 85 % of
it."""
UNKNOWN_LIFETIME_S = 300.0
"""The lifetime assumed for a token if its endpoint does not say."""
FETCH_WITHIN_S = 10.0
WAIT_S = 0.5
"""How long a login waits for another token while the current one is valid. During the renewal of a login, a
broker gets no requests, and one that does not answer for 1.5 s counts as silent."""
MOST_BYTES = 1 << 20
"""The most bytes of an endpoint's answer that are read. A token takes some kB."""
_REFUSED = (400, 401, 403)
"""The HTTP status of an endpoint that does not accept the client (RFC 6749, section 5.2)."""


class NoToken(Exception):
    """Raised when the endpoint cannot be reached or gives no token. The message names no secret."""


class ClientRefused(Exception):
    """Raised when the endpoint does not accept the client's id and secret. The message names no secret."""


class Token(Struct, frozen=True):
    """A token, when another one should be fetched, and until when this one is valid (monotonic seconds)."""

    text: Secret
    renew_at_s: float
    ends_at_s: float


class Tokens(AbstractTokenProvider):
    """The current token, which all connections share.

    `token` is called by kafka-python during a login and must not wait, so `fresh` is awaited before.
    """

    def __init__(
        self, oauth: OAuth, context: ssl.SSLContext, monotonic: Callable[[], float] = time.monotonic
    ):
        self.oauth = oauth
        self._context = context
        self._monotonic = monotonic
        self._token: Token | None = None
        self._fetching: Any = None

    def token(self) -> str:
        """Return the current token. Raises NoToken before the first has been fetched."""
        if self._token is None:
            raise NoToken("no token has been fetched")
        return self._token.text.reveal()

    async def fresh(self, loop: "Loop") -> None:
        """Fetch a token if there is none, or the current one should be renewed.

        Connections that ask at the same time share one request. If the endpoint gives none, or takes long,
        the current token is used while it is valid. Raises NoToken or ClientRefused.
        """
        if self._token is not None and self._monotonic() < self._token.renew_at_s:
            return
        if self._fetching is None:
            self._fetching = loop.begin(lambda: self._fetch(loop))
        fetching = self._fetching
        await loop.settle([fetching], WAIT_S if self._is_valid() else FETCH_WITHIN_S)
        if not fetching.is_done:
            if self._is_valid():
                return
            raise NoToken("the token endpoint has not answered in time")
        try:
            await fetching
        except (NoToken, ClientRefused) as error:
            if not self._is_valid():
                raise
            _log.warning("the OAuth token could not be renewed, and is still valid: %s", error)

    def refused(self) -> None:
        """Fetch another token before the next login, because a broker did not accept the current one.

        The endpoint may have other keys by now, while the current token would be valid for hours.
        """
        if self._token is not None:
            self._token = replace(self._token, renew_at_s=self._monotonic())

    def _is_valid(self) -> bool:
        return self._token is not None and self._monotonic() < self._token.ends_at_s

    async def _fetch(self, loop: "Loop") -> None:
        try:
            self._token = await loop.in_thread(
                lambda: fetch(self.oauth, self._context, self._monotonic), "token"
            )
        finally:
            self._fetching = None


def fetch(oauth: OAuth, context: ssl.SSLContext, monotonic: Callable[[], float] = time.monotonic) -> Token:
    """Ask the endpoint for a token, and wait for its answer. Raises NoToken or ClientRefused."""
    import http.client  # few clusters need a client of HTTP, and none at the start should wait for one
    import urllib.error
    import urllib.parse
    import urllib.request

    credentials = ":".join(map(urllib.parse.quote_plus, (oauth.client_id, oauth.client_secret.reveal())))
    form = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    began_s = monotonic()
    try:
        request = urllib.request.Request(
            oauth.token_url,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Accept": "application/json"},
        )
        # Only this endpoint may see the secret, not another one to which it redirects.
        basic = base64.b64encode(credentials.encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {basic}")
        with urllib.request.urlopen(request, timeout=FETCH_WITHIN_S, context=context) as answer:
            body = answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        error.close()
        said = f"the token endpoint answered with status {error.code}"
        raise (ClientRefused if error.code in _REFUSED else NoToken)(said) from None
    except (ValueError, http.client.InvalidURL):  # whose text quotes the address
        raise NoToken("the token endpoint's address is not valid") from None
    except (OSError, http.client.HTTPException) as error:
        raise NoToken(f"the token endpoint cannot be reached: {error}") from None
    return _token(body, began_s)


def _token(body: bytes, began_s: float) -> Token:
    try:
        answer = json.loads(body)
        text, lifetime_s = answer["access_token"], float(answer.get("expires_in", UNKNOWN_LIFETIME_S))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise NoToken("the token endpoint's answer has no token") from None
    if not isinstance(text, str) or not text or not text.isascii() or not text.isprintable():
        raise NoToken("the token endpoint's answer has no token")
    if not math.isfinite(lifetime_s):
        raise NoToken("the token endpoint's answer does not say how long the token is valid")
    return Token(Secret(text), began_s + RENEWED_AT * lifetime_s, began_s + lifetime_s)
