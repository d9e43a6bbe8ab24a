"""A certificate authority made on the spot, and the certificates that it gives out. Imported for TLS only."""

import datetime
import ssl
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

VALID = datetime.timedelta(days=365)
EARLIER = datetime.timedelta(days=1)
"""Certificates begin before they are made, for clients whose clock is slow."""


class Authority:
    """An authority with a key that is never written anywhere. `pem` is its own certificate."""

    def __init__(self) -> None:
        self._name = _name("kview simulated cluster")
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign(self._name, self._key.public_key(), True)
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, name: str, hosts: Iterable[str] = ()) -> str:
        """Return a new private key with its certificate and the authority's, as PEM.

        With `hosts`, it is a certificate for servers at these names and IP addresses.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(name), key.public_key(), False, [_host(each) for each in hosts])
        hidden = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return hidden + certificate.public_bytes(Encoding.PEM).decode() + self.pem

    def _sign(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePublicKey,
        authority: bool,
        hosts: Sequence[x509.GeneralName] = (),
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - EARLIER)
            .not_valid_after(now + VALID)
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
            .add_extension(_usage(authority), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if not authority:
            purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
            builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _usage(authority: bool) -> x509.KeyUsage:
    """Return what a key is for. Some clients, as those of Python 3.13, accept no certificate without it."""
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def server_context(path: Path, trusted: str) -> ssl.SSLContext:
    """Return the TLS context of brokers whose key and certificates are in a file.

    If `trusted` is not empty, clients must have a certificate of this authority.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(path)
    if trusted:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=trusted)
    return context
