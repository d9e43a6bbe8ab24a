"""The client's end of the line protocol: it never raises and never waits for ever."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from kview.lab.lines import REPLY_TIMEOUT_S, LineFaults
from kview.model.ports import FaultCommand, FaultKind, FaultReply

CRASH = FaultCommand(FaultKind.CRASH, "4")


def talk(
    answer: Callable[[str], str | None],
    act: Callable[[LineFaults], Coroutine[Any, Any, Any]],
    timeout_s: float = REPLY_TIMEOUT_S,
) -> Any:
    """Run `act` against a cluster's end that answers each line with `answer`, and hangs up at None."""

    async def run() -> Any:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)

        async def serve() -> None:
            while line := await reader.readline():
                said = answer(line.decode().strip())
                if said is None:
                    break
                writer.write(said.encode())
            writer.close()

        serving = asyncio.get_running_loop().create_task(serve())
        faults = LineFaults(ours, timeout_s)
        try:
            return await act(faults)
        finally:
            await faults.close()
            await asyncio.wait_for(serving, 5)

    return asyncio.run(run())


def ok(line: str) -> str:
    return "ok 6 brokers; faults: 4 crashed\n" if line == "status" else f"ok did {line}\n"


def test_the_reply_has_what_was_done_and_the_faults_in_force() -> None:
    assert talk(ok, lambda f: f.apply(CRASH)) == FaultReply(True, "did crash 4", ("4 crashed",))


def test_what_was_wrong_is_in_the_reply() -> None:
    def refuse(line: str) -> str:
        return ok(line) if line == "status" else "error there is no node 4: brokers are 0 to 2\n"

    reply = talk(refuse, lambda f: f.apply(CRASH))
    assert reply == FaultReply(False, "there is no node 4: brokers are 0 to 2", ("4 crashed",))


def test_a_command_that_cannot_be_is_not_sent() -> None:
    sent = []

    def note(line: str) -> str:
        sent.append(line)
        return ok(line)

    reply = talk(note, lambda f: f.apply(FaultCommand(FaultKind.SLOW, "4", "fast")))
    assert not reply.ok and "'fast' is no latency" in reply.text
    assert not sent


def test_commands_given_at_once_get_each_its_own_answer() -> None:
    async def several(faults: LineFaults) -> list[FaultReply]:
        commands = [FaultCommand(FaultKind.CRASH, str(node)) for node in range(20)]
        return list(await asyncio.gather(*(faults.apply(command) for command in commands)))

    assert [reply.text for reply in talk(ok, several)] == [f"did crash {node}" for node in range(20)]


def test_a_cluster_that_is_gone_is_a_reply() -> None:
    reply = talk(lambda line: None, lambda f: f.apply(CRASH))
    assert not reply.ok and "it has ended" in reply.text


def test_a_cluster_that_does_not_answer_is_a_reply_in_time_and_for_good() -> None:

    async def twice(faults: LineFaults) -> tuple[FaultReply, FaultReply]:
        return await faults.apply(CRASH), await faults.apply(CRASH)

    first, second = talk(lambda line: "", twice, timeout_s=0.1)
    assert not first.ok and "did not answer in time" in first.text
    assert not second.ok and second.text == first.text
