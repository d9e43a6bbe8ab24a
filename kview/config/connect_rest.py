"""Where the REST API of a cluster's Kafka Connect is, and how to log in there."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from kview.config.references import resolved
from kview.config.secret import Secret

URL, USER, PASSWORD = "connect-url", "connect-user", "connect-password"
"""The keys of a profile."""


class ConnectRest(Struct, frozen=True):
    """A REST API of Kafka Connect. `user` is '' if it asks for no login.

    `url` has neither a user nor a password nor a query, so it may be shown.
    """

    url: str
    user: str = ""
    password: Secret = Secret("")

    @property
    def has_tls(self) -> bool:
        """Whether connections to Connect's REST API are encrypted."""
        return self.url.startswith("https:")


class NotUsable(ValueError):
    """Raised for a key that is missing or has a value that cannot be used. The message is the key."""


def connect_rest(
    values: Mapping[str, str | None], environment: Mapping[str, str], folder: Path
) -> ConnectRest | None:
    """Return the REST API that these keys name, None if there is none.

    References to secrets are resolved. Raises NotUsable, or BadUse if a reference cannot be resolved.
    """
    url, user, password = (resolved(values[key] or "", environment, folder) for key in (URL, USER, PASSWORD))
    if not url and not user and not password and values[URL] is None:
        return None
    check_login({URL: url, USER: user, PASSWORD: password})
    return ConnectRest(url.rstrip("/"), user, Secret(password))


def check_login(login: Mapping[str, str]) -> None:
    """Check an address, a user and a password, in this order, each by its key. Raises NotUsable."""
    (url_key, url), (user_key, user), (password_key, password) = login.items()
    if not is_rest_url(url):
        raise NotUsable(url_key)
    if ":" in user or (password and not user):
        raise NotUsable(user_key)
    if user and not password:
        raise NotUsable(password_key)


def is_rest_url(url: str) -> bool:
    """Return whether `url` is the address of a server, without anything that may be secret."""
    if not url.isascii() or not url.isprintable() or set(url) & set(" @?#\\"):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, or half an IPv6 address
        return False
