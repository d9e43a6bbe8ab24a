"""Who a client of a secured cluster can be: logins, certificates, and the settings and files with them."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from ssl import SSLContext, create_default_context
from typing import Any, Self

from kview.lab.ways import client_file, librdkafka_file


@dataclass(frozen=True)
class Credentials:
    """A user of a cluster, with what clients are set to in order to be that user.

    `client_properties` are for clients of Java, `librdkafka_conf` for those of librdkafka, such as
    confluent-kafka: `Producer(kafka.librdkafka_conf)`. Both have the bootstrap servers. Each is also in a
    file, unless the cluster is not secured. Then they have nothing else, and `user` is "".
    """

    user: str
    client_properties: dict[str, str] = field(repr=False)
    librdkafka_conf: dict[str, Any] = field(repr=False)
    client_properties_file: Path | None = None
    librdkafka_conf_file: Path | None = None

    @classmethod
    def of(cls, user: str, folder: Path) -> Self:
        """Return a user of a secured cluster, whose files are in a folder. Raises OSError."""
        java, native = folder / client_file(user), folder / librdkafka_file(user)
        return cls(user, _settings(java), _settings(native), java, native)

    @property
    def password(self) -> str:
        """The password, "" without a login."""
        return str(self.librdkafka_conf.get("sasl.password", ""))

    @cached_property
    def tls(self) -> SSLContext | None:
        """The context for TLS, if brokers speak it. It has the user's certificate, if they want one."""
        authority = self.librdkafka_conf.get("ssl.ca.location")
        if authority is None:
            return None
        context = create_default_context(cafile=authority)
        if certificate := self.librdkafka_conf.get("ssl.certificate.location"):
            context.load_cert_chain(certificate)
        return context


def _settings(file: Path) -> dict[str, str]:
    lines = file.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)
