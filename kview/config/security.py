"""How to get through to a cluster's brokers: TLS, a login, and addresses that are mapped to others.

Its Kafka Connect and its schema registry, too, if a profile names them."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from kview.config.connect_rest import ConnectRest
from kview.config.decoders import Decoders
from kview.config.schema_registry import SchemaRegistry
from kview.config.secret import HIDDEN, Secret
from kview.model.address import Address
from kview.model.masking import Masks


class Protocol(StrEnum):
    """Kafka's `security.protocol`: whether a listener speaks TLS, and whether it asks for a login."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        """Whether connections to brokers are encrypted."""
        return self in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def has_login(self) -> bool:
        """Whether clients log in by SASL."""
        return self in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


class Mechanism(StrEnum):
    """Kafka's `sasl.mechanism`: how a client logs in."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    GSSAPI = "GSSAPI"
    AWS_MSK_IAM = "AWS_MSK_IAM"


WITH_PASSWORD = frozenset({Mechanism.PLAIN, Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512})
"""The mechanisms with a user name and a password."""


class Identity(Struct, frozen=True):
    """A client's certificate with its chain, and its private key, both as PEM.

    `source` names the file, for errors. `password` is that of an encrypted key.
    """

    source: str
    chain: str
    key: Secret
    password: Secret | None = None


class Tls(Struct, frozen=True):
    """Which servers to trust, and who kview is.

    `authorities` are certificates as PEM, '' for those that this machine trusts.
    """

    authorities: str = ""
    identity: Identity | None = None
    check_host_name: bool = True


class OAuth(Struct, frozen=True):
    """Client credentials (RFC 6749, section 4.4) and the endpoint that gives a token for them."""

    token_url: str
    client_id: str
    client_secret: Secret
    scope: str = ""

    @property
    def shown_url(self) -> str:
        """The endpoint without what may be secret: a user, a password, or a query."""
        place, query, _ = self.token_url.partition("?")
        scheme, mark, rest = place.rpartition("://")
        host, slash, path = rest.partition("/")
        _, at, host = host.rpartition("@")
        return f"{scheme}{mark}{HIDDEN * bool(at)}{at}{host}{slash}{path}{query}{HIDDEN * bool(query)}"


class Login(Struct, frozen=True):
    """How to log in. `oauth` is set for OAUTHBEARER; `user` and `password` are for WITH_PASSWORD."""

    mechanism: Mechanism
    user: str = ""
    password: Secret = field(default_factory=lambda: Secret(""))
    kerberos_service: str = "kafka"
    oauth: OAuth | None = None


class Security(Struct, frozen=True):
    """Everything that a connection needs besides an address.

    `tls` and `login` are set if, and only if, the protocol has them. `routes` says where to connect instead
    of the address that a broker advertises. `connect` and `registry` are set if a profile names them; with
    TLS, they are trusted as brokers are. `decoders` and `masks` say how records are decoded,
    and what is hidden of them, by topic.
    """

    protocol: Protocol = Protocol.PLAINTEXT
    tls: Tls | None = None
    login: Login | None = None
    routes: Mapping[Address, Address] = field(default_factory=dict)
    connect: ConnectRest | None = None
    registry: SchemaRegistry | None = None
    decoders: Decoders = Decoders()
    masks: Masks = Masks()

    def route(self, address: Address) -> Address:
        """Return where to connect for `address`: what the user mapped it to, else itself."""
        return self.routes.get(address, address)


PLAINTEXT = Security()
