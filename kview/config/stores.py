"""Files with certificates and keys: PEM and PKCS12, told apart by their contents, not by their names."""

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from kview.config.references import read_file
from kview.config.secret import Secret
from kview.config.security import Identity
from kview.errors import BadUse, ErrorKind

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""The first bytes of a JKS and of a JCEKS store."""
_SEQUENCE = b"\x30"
"""The first byte of DER, in which PKCS12 is written."""
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_ANY_KEY = "PRIVATE KEY-----"


def authorities(path: Path, password: Secret | None) -> str:
    """Return the certificates of a trust store as PEM. Raises BadUse."""
    data = _store(path)
    if data.startswith(_SEQUENCE):
        store = _pkcs12(path, data, password)
        certificates = [extra.certificate for extra in store.additional_certs]
        certificates += [store.cert.certificate] if store.cert else []
        text = "".join(map(_pem, certificates))
    else:
        text = _text(path, data)
    if _CERTIFICATE not in text:
        raise BadUse(ErrorKind.STORE_WITHOUT_CERTIFICATE, file=str(path))
    return text


def identity(path: Path, password: Secret | None, key_password: Secret | None) -> Identity:
    """Return the private key and certificates of a key store. Raises BadUse.

    `password` is that of a PKCS12 store, and `key_password` that of an encrypted key in PEM.
    """
    data = _store(path)
    if not data.startswith(_SEQUENCE):
        return pem_identity(str(path), _text(path, data), _text(path, data), key_password)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    store = _pkcs12(path, data, password)
    if store.key is None:
        raise BadUse(ErrorKind.STORE_WITHOUT_KEY, file=str(path))
    if store.cert is None:
        raise BadUse(ErrorKind.STORE_WITHOUT_CERTIFICATE, file=str(path))
    chain = [store.cert.certificate, *(extra.certificate for extra in store.additional_certs)]
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Identity(str(path), "".join(map(_pem, chain)), Secret(key.decode()))


def pem_file(path: Path) -> str:
    """Return the text of a file in PEM. Raises BadUse."""
    return _text(path, _store(path))


def pem_identity(source: str, chain: str, key: str, key_password: Secret | None) -> Identity:
    """Return the identity in texts in PEM. `source` names them in errors. Raises BadUse."""
    if _CERTIFICATE not in chain:
        raise BadUse(ErrorKind.STORE_WITHOUT_CERTIFICATE, file=source)
    if _ANY_KEY not in key:
        raise BadUse(ErrorKind.STORE_WITHOUT_KEY, file=source)
    return Identity(source, chain, Secret(key), key_password)


def _store(path: Path) -> bytes:
    data = read_file(path)
    if data.startswith(_JKS):
        target = str(path.with_suffix(".p12"))
        raise BadUse(ErrorKind.STORE_IS_JKS, file=str(path), target=target)
    return data


def _text(path: Path, data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    if "-----BEGIN " not in text:
        raise BadUse(ErrorKind.STORE_UNKNOWN, file=str(path))
    return text


def _pkcs12(path: Path, data: bytes, password: Secret | None) -> "PKCS12KeyAndCertificates":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        return load_pkcs12(data, password.reveal().encode() if password else None)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadUse(ErrorKind.STORE_NOT_OPENED, file=str(path)) from error


def _pem(certificate: "Certificate") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return ssl.DER_cert_to_PEM_cert(certificate.public_bytes(Encoding.DER))
