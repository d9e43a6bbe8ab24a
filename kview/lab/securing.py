"""Secures a simulated cluster: users and certificates made on the spot, and files for clients to log in.

The files are in a folder that only this user can read, and that goes when the cluster ends.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kview.config.scratch import SECURED, Scratch
from kview.config.secret import Secret
from kview.config.security import Mechanism
from kview.errors import ErrorKind, KviewError
from kview.lab.ways import ADMIN, ALICE, Way, client_file, librdkafka_file
from kview.serve.listener import HOST, Port
from kview.serve.login import Logins
from kview.serve.security import ListenerSecurity
from kview.simulate.scram import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    ScramUser,
    credential,
    salted,
)
from kview.simulate.settings import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS, Settings
from kview.simulate.tokens import SECRET_KEY
from kview.simulate.world import World

if TYPE_CHECKING:
    from kview.serve.certificates import Authority

PASSWORD_BYTES, SALT_BYTES = 12, 16
AUTHORITY_FILE, SERVER_FILE = "ca.pem", "server.pem"
_MODULES = "org.apache.kafka.common.security"


class Secured:
    """The users, certificates and files of a secured cluster, whose brokers have these ports. Use it as a
    context manager.

    Raises KviewError if the files cannot be written.
    """

    def __init__(self, way: Way, ports: Sequence[Port]) -> None:
        self._way = way
        self._ports = ports
        self._scratch = Scratch(SECURED)
        self.folder = self._scratch.path
        self._passwords = {user: Secret(secrets.token_urlsafe(PASSWORD_BYTES)) for user in way.users}
        self._authority: Authority | None = None
        try:
            self._write_files()
        except OSError as error:
            self._scratch.remove()
            reason = error.strerror or str(error)
            raise KviewError(ErrorKind.SPARK_NO_FOLDER, folder=str(self.folder), reason=reason) from error

    def _write_files(self) -> None:
        if self._way.protocol.has_tls:
            from kview.serve import certificates

            self._authority = certificates.Authority()
            _write(self.folder / AUTHORITY_FILE, self._authority.pem)
            _write(self.folder / SERVER_FILE, self._authority.issue("broker", self._hosts()))
        for user in self._way.users:
            self._write_client(user)

    def _hosts(self) -> list[str]:
        """Return the names and addresses at which clients may have reached a broker."""
        here = (port.interface.near for port in self._ports)
        return list(
            dict.fromkeys(["localhost", HOST, *here, *(port.advertised.host for port in self._ports)])
        )

    def __enter__(self) -> "Secured":
        return self

    def __exit__(self, *how: object) -> None:
        self._scratch.remove()

    @property
    def knows_users(self) -> bool:
        """Whether brokers know who a client is."""
        return self._way.knows_users

    @property
    def client_file(self) -> Path:
        """The file with which a client may do everything."""
        return self.folder / client_file("")

    @property
    def line(self) -> str:
        """The line that says where the files are, without any password."""
        if not self._way.knows_users:
            return f"command.config={self.client_file}"
        others = f"(user {ADMIN}; {ALICE} has {client_file(ALICE)}, and no rights yet)"
        return f"command.config={self.client_file} {others}"

    def world(self, world: World) -> World:
        """Return a world with these users, who have rights if the brokers know who a client is.

        What the world itself says about authorization counts.
        """
        if not self._way.knows_users:
            return world
        authorizer = {AUTHORIZER: STANDARD_AUTHORIZER, SUPER_USERS: self._way.principal(ADMIN)}
        scram = {} if self._way.mechanism is None else self._credentials()
        return replace(world, settings={**authorizer, **world.settings}, scram=scram)

    def listeners(self, settings: Settings) -> ListenerSecurity:
        """Return the security of the brokers' listeners."""
        logins = None
        if self._way.mechanism is not None:
            logins = Logins(
                self._passwords,
                settings.us("connections.max.reauth.ms"),
                settings.us("connection.failed.authentication.delay.ms"),
                Secret(settings.text(SECRET_KEY)) if settings.text(SECRET_KEY) else None,
            )
        context = None
        if self._authority is not None:
            from kview.serve import certificates

            trusted = self._authority.pem if self._way.mutual else ""
            context = certificates.server_context(self.folder / SERVER_FILE, trusted)
        return ListenerSecurity(self._way.protocol, context, logins)

    def _credentials(self) -> Mapping[ScramUser, ScramCredential]:
        made: dict[ScramUser, ScramCredential] = {}
        for user, password in self._passwords.items():
            for mechanism in ScramMechanism:
                salt = secrets.token_bytes(SALT_BYTES)
                hidden = salted(mechanism, password.reveal().encode(), salt, ITERATIONS_MIN)
                made[user, mechanism] = credential(mechanism, hidden, salt, ITERATIONS_MIN)
        return made

    def _write_client(self, user: str) -> None:
        """Write the files with which a client of Java or of librdkafka is this user."""
        way, password = self._way, self._passwords[user].reveal()
        servers = ",".join(str(port.advertised) for port in self._ports)
        java = {"bootstrap.servers": servers, "security.protocol": way.protocol.value}
        native = dict(java)
        if way.mechanism is not None:
            module = "plain.Plain" if way.mechanism is Mechanism.PLAIN else "scram.Scram"
            java["sasl.mechanism"] = native["sasl.mechanism"] = way.mechanism.value
            java["sasl.jaas.config"] = (
                f'{_MODULES}.{module}LoginModule required username="{user}" password="{password}";'
            )
            native |= {"sasl.username": user, "sasl.password": password}
        if self._authority is not None:
            authority = str(self.folder / AUTHORITY_FILE)
            java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
            native["ssl.ca.location"] = authority
        if way.mutual and self._authority is not None:
            identity = self.folder / f"{user}.pem"
            _write(identity, self._authority.issue(user))
            java |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(identity)}
            native |= {"ssl.certificate.location": str(identity), "ssl.key.location": str(identity)}
        _write(self.folder / client_file(user), _lines(java))
        _write(self.folder / librdkafka_file(user), _lines(native))


def _lines(values: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _write(path: Path, text: str) -> None:
    """Write a file that only this user can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
