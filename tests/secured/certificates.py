"""Authorities of a test's own, and the certificates and keys that they give out."""

import datetime
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

DAY = datetime.timedelta(days=1)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


@dataclass(frozen=True)
class Issued:
    """A certificate, its private key, and the certificate of its authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    authority: x509.Certificate

    @property
    def chain_pem(self) -> str:
        """The certificate and its authority's, as PEM."""
        return pem(self.certificate) + pem(self.authority)

    def key_pem(self, password: str = "") -> str:
        """The private key as PKCS8 in PEM."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption(password)).decode()

    def write(self, path: Path, password: str = "") -> Path:
        """Write key, certificate and authority into one file."""
        path.write_text(self.key_pem(password) + self.chain_pem)
        return path


@dataclass(frozen=True)
class Authority:
    """A self-signed authority."""

    name: str = "test authority"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def certificate(self) -> x509.Certificate:
        """The authority's own certificate."""
        return self._sign(self.name, self.key.public_key(), (), DAY, authority=True)

    def pem(self) -> str:
        """The authority's own certificate as PEM."""
        return pem(self.certificate())

    def write(self, path: Path) -> Path:
        """Write the authority's own certificate."""
        path.write_text(self.pem())
        return path

    def issue(
        self,
        name: str,
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
        ends_in: datetime.timedelta = DAY,
    ) -> Issued:
        """Give out a certificate for these hosts. With a negative `ends_in`, it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        return Issued(self._sign(name, key.public_key(), hosts, ends_in, False), key, self.certificate())

    def _sign(
        self,
        name: str,
        key: ec.EllipticCurvePublicKey,
        hosts: tuple[str, ...],
        ends_in: datetime.timedelta,
        authority: bool,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(self.name))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 3 * DAY)
            .not_valid_after(now + ends_in)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if hosts:
            names = x509.SubjectAlternativeName(list(map(_alternative, hosts)))
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self.key, hashes.SHA256())


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def pem(certificate: x509.Certificate) -> str:
    """A certificate as PEM."""
    return certificate.public_bytes(Encoding.PEM).decode()


def encryption(password: str) -> KeySerializationEncryption:
    """How a key with this password is written."""
    return BestAvailableEncryption(password.encode()) if password else NoEncryption()
