"""The served cluster's event loop waits for less than a millisecond."""

import asyncio
import socket
import time

from kview.serve.precise_loop import precise_loop

WAIT_S = 0.0003


def test_a_wait_of_0_3_ms_takes_less_than_a_millisecond() -> None:
    async def shortest_s() -> float:
        waits = []
        for _ in range(200):
            began = time.perf_counter()
            await asyncio.sleep(WAIT_S)
            waits.append(time.perf_counter() - began)
        return min(waits)

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        assert WAIT_S <= runner.run(shortest_s()) < 0.001


def test_what_arrives_meanwhile_ends_a_wait() -> None:
    async def arrival() -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            loop.call_later(0.002, lambda: None)
            loop.call_soon(theirs.send, b"x")
            return await loop.sock_recv(ours, 1)

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        assert runner.run(arrival()) == b"x"
