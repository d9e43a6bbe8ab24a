"""Framing of requests and responses: headers, sizes, and bytes that are refused before they are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import HeartbeatRequest

from kview.serve.frames import MAX_REQUEST_BYTES, Garbage, frame_size, pack, parse_header
from kview.wire.primitives import MalformedBytes, skip_tagged_fields


@pytest.mark.parametrize("version", [0, 4])
@given(correlation_id=st.integers(0, 2**31 - 1), client_id=st.text(max_size=100))
def test_a_request_header_is_read_as_the_codec_writes_it(
    version: int, correlation_id: int, client_id: str
) -> None:
    request = HeartbeatRequest(version=version, group_id="g", generation_id=1, member_id="m")
    request.with_header(correlation_id, client_id)
    frame = memoryview(bytes(request.encode(header=True)))
    header = parse_header(frame)
    assert (header.api_key, header.api_version) == (12, version)
    assert (header.correlation_id, header.client_id) == (correlation_id, client_id)
    begin = skip_tagged_fields(frame, header.end) if version >= 4 else header.end
    assert bytes(frame[begin:]) == bytes(request.encode())


@pytest.mark.parametrize("size", [-1, MAX_REQUEST_BYTES + 1, 2**31 - 1])
def test_a_size_that_no_request_has_is_garbage(size: int) -> None:
    with pytest.raises(Garbage):
        frame_size(bytearray(size.to_bytes(4, "big", signed=True)), 0)


def test_a_client_id_longer_than_its_frame_is_garbage() -> None:
    with pytest.raises(MalformedBytes):
        parse_header(memoryview(bytes(8) + (99).to_bytes(2, "big") + b"abc"))


def test_answers_carry_their_size_and_correlation_id() -> None:
    assert pack(7, (b"ab", b"c"), False) == bytes([0, 0, 0, 7, 0, 0, 0, 7]) + b"abc"
    assert pack(7, (b"abc",), True) == bytes([0, 0, 0, 8, 0, 0, 0, 7, 0]) + b"abc"
