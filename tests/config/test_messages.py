"""Messages between kview and its child processes arrive completely or not at all."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import Decoder

from kview.config.messages import MAX_FOLLOWING_BYTES, BytesFollow, encode, messages, next_message
from kview.errors import ErrorFacts, ErrorKind, KviewError
from tests.waiting import PATIENCE_S

Message = ErrorFacts | bytes

A_BUG, NO_JAVA = (
    KviewError(ErrorKind.SPARK_FAILED, cause="a bug – üü\n").facts,
    KviewError(ErrorKind.NO_JAVA, least=17).facts,
)
SAID: list[Message] = [A_BUG, bytes(range(256)) * 5, b"", NO_JAVA]

decoder: Decoder[Message] = Decoder(BytesFollow | ErrorFacts)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.settimeout(PATIENCE_S)
    with ours, theirs:
        yield ours, theirs


def heard(sent: bytes, pieces: list[int] | None = None) -> list[Message]:
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
            return list(messages(ours, decoder))
        finally:
            saying.join(PATIENCE_S)


@given(
    st.lists(st.sampled_from([A_BUG, NO_JAVA]) | st.binary(max_size=300), max_size=6),
    st.lists(st.integers(1, 40), max_size=30),
)
def test_what_is_sent_is_heard_in_whatever_pieces_it_comes(said: list[Message], pieces: list[int]) -> None:
    assert heard(b"".join(map(encode, said)), pieces) == said


def test_bytes_larger_than_a_socket_holds_are_heard(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    body = bytes(range(256)) * 20_000
    saying = threading.Thread(target=theirs.sendall, args=(encode(body),))
    saying.start()
    assert next(messages(ours, decoder)) == body
    saying.join(PATIENCE_S)


def test_a_message_is_heard_before_the_next_one_comes(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    hearing = messages(ours, decoder)
    for message in SAID:
        theirs.sendall(encode(message))
        assert next(hearing) == message


def test_where_the_other_side_goes_midway_whole_messages_are_heard() -> None:
    sent = [encode(message) for message in SAID]
    ends = [len(b"".join(sent[:count])) for count in range(len(sent) + 1)]
    for cut in range(ends[-1] + 1):
        whole = sum(end <= cut for end in ends) - 1
        assert heard(b"".join(sent)[:cut]) == SAID[:whole], cut


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"Java ran out of memory\n",
        b"\xff\n",
        b'{"type":"fly"}\n',
        b'{"type":"error"}\n',
        b'{"type":"error","kind":"fly","values":{}}\n',
        b'{"type":"bytes","length":-1}\n',
        b'{"type":"bytes","length":%d}\n' % (MAX_FOLLOWING_BYTES + 1),
    ],
)
def test_what_is_not_a_message_is_refused(line: bytes, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(line)
    with pytest.raises(ValueError):
        next(messages(ours, decoder))


def test_a_line_that_is_too_long_is_refused_before_its_end(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    theirs.sendall(b"{" * 100)
    with pytest.raises(ValueError, match="a line longer than 100 bytes"):
        next(messages(ours, decoder, 100))


def test_silence_lasts_until_the_sockets_timeout(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.settimeout(0.01)
    theirs.sendall(b"{")
    with pytest.raises(TimeoutError):
        next(messages(ours, decoder))


def test_who_stops_waiting_on_an_event_loop_loses_nothing() -> None:
    async def run() -> None:
        reader, (first, second) = asyncio.StreamReader(), map(encode, (A_BUG, NO_JAVA))
        reader.feed_data(first[:-1])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(next_message(reader, decoder), 0.01)
        reader.feed_data(first[-1:] + second + b"{")
        reader.feed_eof()
        assert [await next_message(reader, decoder) for _ in range(2)] == [A_BUG, NO_JAVA]
        with pytest.raises(EOFError):
            await next_message(reader, decoder)

    asyncio.run(run())
