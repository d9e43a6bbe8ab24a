"""How connections to the brokers are secured: TLS, logins, and who a client is."""

import ssl
from dataclasses import dataclass

from kview.config.security import Protocol
from kview.serve.login import ANONYMOUS, MECHANISMS, Logins


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """The security of every broker's listener. `tls` and `logins` are set if the protocol has them."""

    protocol: Protocol = Protocol.PLAINTEXT
    tls: ssl.SSLContext | None = None
    logins: Logins | None = None

    @property
    def settings(self) -> dict[str, str]:
        """The settings that a broker's file would have for this."""
        settings = {}
        if self.logins is not None:
            settings["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
        if self.tls is not None:
            wants_certificate = self.tls.verify_mode is ssl.CERT_REQUIRED
            settings["ssl.client.auth"] = "required" if wants_certificate else "none"
            settings["ssl.keystore.type"] = "PEM"
        return settings


PLAINTEXT = ListenerSecurity()


def principal_of(session: ssl.SSLObject) -> str:
    """Return who a client is by its certificate: its distinguished name, as in `User:CN=alice`."""
    certificate = session.getpeercert(binary_form=True)
    if certificate is None:
        return ANONYMOUS
    from cryptography import x509

    return f"User:{x509.load_der_x509_certificate(certificate).subject.rfc4514_string()}"
