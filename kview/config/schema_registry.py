"""Where a cluster's schema registry is, and how to log in there."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kview.config.connect_rest import NotUsable, check_login
from kview.config.references import resolved
from kview.config.secret import Secret

URL, USER = "schema-registry-url", "schema-registry-user"
PASSWORD, TOKEN = "schema-registry-password", "schema-registry-token"
"""The keys of a profile."""


class SchemaRegistry(Struct, frozen=True):
    """A registry with Confluent's REST API. `user` is '' if it asks for no password, and `token` if for no
    bearer token. `url` has nothing that is secret, so it may be shown."""

    url: str
    user: str = ""
    password: Secret = Secret("")
    token: Secret = Secret("")

    @property
    def has_tls(self) -> bool:
        """Whether connections to the registry are encrypted."""
        return self.url.startswith("https:")


def schema_registry(
    values: Mapping[str, str | None], environment: Mapping[str, str], folder: Path
) -> SchemaRegistry | None:
    """Return the registry that these keys name, None if there is none.

    References to secrets are resolved. Raises NotUsable, or BadUse if a reference cannot be resolved.
    """
    keys = (URL, USER, PASSWORD, TOKEN)
    url, user, password, token = (resolved(values[key] or "", environment, folder) for key in keys)
    if values[URL] is None and not (user or password or token):
        return None
    check_login({URL: url, USER: user, PASSWORD: password})
    # A token goes into a line of HTTP, which nothing in it may end.
    if token and (user or not token.isascii() or not token.isprintable() or " " in token):
        raise NotUsable(TOKEN)
    return SchemaRegistry(url.rstrip("/"), user, Secret(password), Secret(token))
