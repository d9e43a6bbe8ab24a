"""Messages from the live job's process to kview arrive completely or not at all."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.errors import ErrorKind, KviewError
from kview.pipeline.messages import MAX_BODY_BYTES, MessageKind, failure, failure_of, messages, send
from tests.waiting import PATIENCE_S

SAID = [
    (MessageKind.FAILED, b""),
    (MessageKind.ROLLUPS, bytes(range(256)) * 5),
    (MessageKind.FAILED, "Java ran out of memory – üü".encode()),
]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.settimeout(PATIENCE_S)
    with ours, theirs:
        yield ours, theirs


def framed(said: list[tuple[MessageKind, bytes]]) -> bytes:
    """Return the messages as bytes on the socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for kind, body in said:
            send(theirs, kind, body)
        theirs.shutdown(socket.SHUT_WR)
        with ours.makefile("rb") as stream:
            return stream.read()


def heard(sent: bytes, pieces: list[int] | None = None) -> list[tuple[MessageKind, bytes]]:
    """Return the messages received from these bytes, sent in pieces of these lengths before the other side
    closes."""
    ours, theirs = socket.socketpair()
    with ours:

        def say() -> None:
            with theirs:
                rest = sent
                for length in pieces or []:
                    theirs.sendall(rest[:length])
                    rest = rest[length:]
                theirs.sendall(rest)

        saying = threading.Thread(target=say)
        saying.start()
        try:
            return list(messages(ours))
        finally:
            saying.join(PATIENCE_S)


@given(
    st.lists(st.tuples(st.sampled_from(MessageKind), st.binary(max_size=300)), max_size=6),
    st.lists(st.integers(1, 40), max_size=30),
)
def test_what_is_sent_is_heard_in_whatever_pieces_it_comes(
    said: list[tuple[MessageKind, bytes]], pieces: list[int]
) -> None:
    assert heard(framed(said), pieces) == said


def test_a_body_larger_than_a_socket_holds_is_heard(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    body = bytes(range(256)) * 20_000
    saying = threading.Thread(target=send, args=(theirs, MessageKind.ROLLUPS, body))
    saying.start()
    assert next(messages(ours)) == (MessageKind.ROLLUPS, body)
    saying.join(PATIENCE_S)


def test_a_message_is_heard_before_the_next_one_comes(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    hearing = messages(ours)
    for kind, body in SAID:
        send(theirs, kind, body)
        assert next(hearing) == (kind, body)


def test_where_the_other_side_goes_midway_whole_messages_are_heard() -> None:
    ends = [len(framed(SAID[:count])) for count in range(len(SAID) + 1)]
    sent = framed(SAID)
    for cut in range(len(sent) + 1):
        whole = sum(end <= cut for end in ends) - 1
        assert heard(sent[:cut]) == SAID[:whole], cut


def test_a_body_that_is_too_long_is_refused_before_it_is_read(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    theirs.sendall(struct.pack(">cI", MessageKind.ROLLUPS.value, MAX_BODY_BYTES + 1))
    with pytest.raises(ValueError, match=f"a message of {MAX_BODY_BYTES + 1} bytes"):
        next(messages(ours))


def test_what_is_not_a_message_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(struct.pack(">cI", b"?", 2) + b"ok")
    with pytest.raises(ValueError):
        next(messages(ours))


def test_nothing_can_be_said_to_who_has_gone(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.close()
    with pytest.raises(OSError):
        send(theirs, MessageKind.FAILED, b"")


def test_a_failure_is_a_kind_with_values() -> None:
    error = KviewError(ErrorKind.SPARK_FAILED, cause="a bug – üü")
    assert failure_of(failure(error)) == error.facts


@pytest.mark.parametrize("body", [b"", b"Java ran out of memory", b'{"kind":"fly","values":{}}', b"\xff"])
def test_what_is_not_a_failure_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        failure_of(body)
