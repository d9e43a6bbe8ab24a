"""The address of a broker: a host and a port. Addresses are parsed only here."""

from enum import StrEnum
from typing import NamedTuple, Self

HIGHEST_PORT = 65_535
MOST_DIGITS = 9
"""Limit of digits in a port, including leading zeros. Python cannot convert thousands of digits to a
number."""


class AddressFault(StrEnum):
    """What is wrong with a text that should be an address."""

    EMPTY = "empty"
    URL = "url"
    NO_PORT = "no port"
    UNBRACKETED = "unbracketed"
    """An IPv6 address without its brackets."""
    NO_HOST = "no host"
    BAD_PORT = "bad port"


class AddressError(ValueError):
    """A text that is not `HOST:PORT`. For BAD_PORT, `port` is the text in place of the port."""

    def __init__(self, fault: AddressFault, port: str = "") -> None:
        super().__init__(fault, port)
        self.fault = fault
        self.port = port


class Address(NamedTuple):
    """A host name or IP address, without brackets, and a port. Sockets accept the tuple directly."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the address in `HOST:PORT`. An IPv6 address is in brackets. Raises AddressError."""
        text = text.strip()
        if not text:
            raise AddressError(AddressFault.EMPTY)
        if "://" in text:
            raise AddressError(AddressFault.URL)
        host, colon, port = text.rpartition(":")
        if not colon or text.endswith("]"):
            raise AddressError(AddressFault.NO_PORT)
        bracketed = host.startswith("[") and host.endswith("]")
        if ":" in host and not bracketed:
            raise AddressError(AddressFault.UNBRACKETED)
        if bracketed:
            host = host[1:-1]
        if not host or any(c.isspace() or c in "/[]" for c in host):
            raise AddressError(AddressFault.NO_HOST)
        if not (
            port.isascii() and port.isdigit() and len(port) <= MOST_DIGITS and 1 <= int(port) <= HIGHEST_PORT
        ):
            raise AddressError(AddressFault.BAD_PORT, port)
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{Place(self.host)}:{self.port}"


class Place(NamedTuple):
    """A host name or IP address, without brackets, and a port, or None for any."""

    host: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the place in `HOST[:PORT]`. An IPv6 address is in brackets. Raises AddressError."""
        text = text.strip()
        if text and (":" not in text or text.endswith("]")):
            return cls(Address.parse(f"{text}:{HIGHEST_PORT}").host)
        return cls(*Address.parse(text))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"
