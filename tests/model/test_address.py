"""Addresses as people type them, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.model.address import Address, AddressError, AddressFault


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", Address("localhost", 9092)),
        (" broker-1.example.com:1 ", Address("broker-1.example.com", 1)),
        ("127.0.0.1:65535", Address("127.0.0.1", 65535)),
        ("[::1]:9092", Address("::1", 9092)),
        ("[fe80::1%eth0]:9092", Address("fe80::1%eth0", 9092)),
    ],
)
def test_an_address_is_read_and_written(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text.strip()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", AddressFault.EMPTY),
        ("  ", AddressFault.EMPTY),
        ("kafka://a:1", AddressFault.URL),
        ("a", AddressFault.NO_PORT),
        ("[::1]", AddressFault.NO_PORT),
        ("::1:9092", AddressFault.UNBRACKETED),
        ("[::1:9092", AddressFault.UNBRACKETED),
        (":9092", AddressFault.NO_HOST),
        ("[]:9092", AddressFault.NO_HOST),
        ("a b:9092", AddressFault.NO_HOST),
        ("a/b:9092", AddressFault.NO_HOST),
        ("a:", AddressFault.BAD_PORT),
        ("a:0", AddressFault.BAD_PORT),
        ("a:65536", AddressFault.BAD_PORT),
        ("a:+1", AddressFault.BAD_PORT),
        ("a:٩", AddressFault.BAD_PORT),
        (f"a:{'1' * 5000}", AddressFault.BAD_PORT),
    ],
)
def test_what_is_not_an_address(text: str, fault: AddressFault) -> None:
    with pytest.raises(AddressError) as caught:
        Address.parse(text)
    assert caught.value.fault is fault


@given(st.text(max_size=20))
def test_any_text_is_an_address_that_reads_back_or_an_address_error(text: str) -> None:
    try:
        address = Address.parse(text)
    except AddressError:
        return
    assert Address.parse(str(address)) == address
