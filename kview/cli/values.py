"""Values of flags and arguments as people type them: durations and bootstrap servers."""

import math
import re
from collections.abc import Iterable
from typing import Any

import click

from kview.errors import BadUse, ErrorKind
from kview.model.address import HIGHEST_PORT, Address, AddressError, AddressFault, Place

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "": 1_000}
_UNITS_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([kmgt]?)b?")
_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|m|)")


class Duration(click.ParamType[int]):
    """A length of time: `500ms`, `1s`, `1.5s`, `2m`, or a number of seconds. The value is in milliseconds."""

    name = "duration"

    def __init__(self, least_ms: int, most_ms: int) -> None:
        self.least_ms = least_ms
        self.most_ms = most_ms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the milliseconds. Fails with a usage error if `value` is not a duration or is out of
        bounds."""
        if isinstance(value, int):
            return value
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            self.fail(f"{value!r} is not a valid duration: write 500ms, 1s or 2m.", param, ctx)
        duration_ms = round(float(match[1]) * _UNITS_MS[match[2]])
        if not self.least_ms <= duration_ms <= self.most_ms:
            self.fail(f"{value} is not between {words(self.least_ms)} and {words(self.most_ms)}.", param, ctx)
        return duration_ms


class ByteSize(click.ParamType[int]):
    """A number of bytes: `500k`, `20m`, `1.5g`, in units of 1,000."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes. Fails with a usage error if `value` is not a size."""
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip().lower())
        size = round(float(match[1]) * _UNITS_BYTES[match[2]]) if match else 0
        if size <= 0:
            self.fail(f"{value!r} is not a valid size: write 500k, 20m or 1g.", param, ctx)
        return size


class Amount(click.ParamType[float]):
    """A number from 0 to `most`."""

    name = "amount"

    def __init__(self, most: float) -> None:
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Fails with a usage error if `value` is not one or is out of bounds."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number <= self.most:  # NaN is not, either
            self.fail(f"{value!r} is not a number from 0 to {self.most:,.0f}.", param, ctx)
        return number


def words(duration_ms: int) -> str:
    """Return a duration as people type it: `500ms`, `1s`, `2m`."""
    for unit, unit_ms in (("m", 60_000), ("s", 1_000)):
        if duration_ms % unit_ms == 0:
            return f"{duration_ms // unit_ms}{unit}"
    return f"{duration_ms}ms"


def bootstrap_servers(text: str) -> tuple[Address, ...]:
    """Return the addresses in `HOST:PORT[,HOST:PORT…]` in order, without duplicates. Raises BadUse."""
    return tuple(dict.fromkeys(_address(server.strip(), text) for server in text.split(",")))


LOOPBACK = "127.0.0.1"


def listening_address(text: str) -> Address:
    """Return the address in `[HOST:]PORT`. Without a host, it is this machine's alone. Raises BadUse."""
    port = text.strip().removeprefix(":")
    return _address(f"{LOOPBACK}:{port}" if ":" not in port else port, text)


def places(text: str) -> tuple[Place, ...]:
    """Return the places in `HOST[:PORT][,HOST[:PORT]…]` in order. Raises BadUse."""
    return tuple(_place(each.strip(), text) for each in text.split(","))


def _place(place: str, text: str) -> Place:
    try:
        return Place.parse(place)
    except AddressError as error:
        raise _bad_server(error, place, text) from error


def serving_address(text: str) -> Address:
    """Return the address in `[HOST:]PORT`, where port 0 is any that is free. Raises BadUse."""
    text = text.strip()
    if text.rpartition(":")[2] != "0":
        return listening_address(text)
    return listening_address(f"{text[:-1]}{HIGHEST_PORT}")._replace(port=0)


def rest_url(ctx: click.Context, param: click.Parameter, given: str) -> str:
    """Return the URL of a REST API. Fails with a usage error, which does not quote what may be secret."""
    from kview.config.connect_rest import is_rest_url

    if given and not is_rest_url(given):
        raise click.BadParameter(
            'give the address of a server, such as "https://registry:8081", without a user, password or query'
        )
    return given


def address_map(texts: Iterable[str]) -> dict[Address, Address]:
    """Return the addresses in `FROM=TO`, such as `kafka:9092=localhost:9092`. Raises BadUse."""
    addresses = {}
    for text in texts:
        advertised, _, reached = text.partition("=")
        try:
            addresses[Address.parse(advertised.strip())] = Address.parse(reached.strip())
        except AddressError as error:
            raise BadUse(ErrorKind.MAP_WRONG, text=text) from error
    return addresses


def _address(server: str, text: str) -> Address:
    try:
        return Address.parse(server)
    except AddressError as error:
        raise _bad_server(error, server, text) from error


def _bad_server(error: AddressError, server: str, text: str) -> BadUse:
    match error.fault:
        case AddressFault.EMPTY:
            return BadUse(ErrorKind.SERVER_EMPTY, text=text)
        case AddressFault.URL:
            return BadUse(ErrorKind.SERVER_IS_URL, server=server)
        case AddressFault.NO_PORT:
            return BadUse(ErrorKind.SERVER_WITHOUT_PORT, server=server)
        case AddressFault.UNBRACKETED:
            return BadUse(ErrorKind.SERVER_WITHOUT_BRACKETS, server=server)
        case AddressFault.NO_HOST:
            return BadUse(ErrorKind.SERVER_WITHOUT_HOST, server=server)
        case AddressFault.BAD_PORT:
            return BadUse(ErrorKind.SERVER_PORT_WRONG, server=server, port=error.port)
