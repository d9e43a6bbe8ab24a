"""kview's end of the control channel never raises an exception and never waits for ever."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from kview.config.messages import MAX_MESSAGE_BYTES, encode
from kview.errors import BadUse, ErrorKind, KviewError
from kview.lab.client import ControlClient
from kview.lab.messages import Ask, Counters, Request, requests
from kview.language.errors import sentence
from kview.model.lab import ActiveFault, Command, CommandKind, Done, FaultState, Reply, Status

CRASH = Command(CommandKind.CRASH, 4)


def talk(
    answer: Callable[[Request], bytes | None],
    act: Callable[[ControlClient], Coroutine[Any, Any, Any]],
) -> Any:
    """Run `act` with a client whose peer answers each request with `answer`, and closes the channel if that
    returns None."""

    async def run() -> Any:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)

        async def serve() -> None:
            with suppress(OSError):  # The client closes the channel if an answer is too long.
                while line := await reader.readline():
                    said = answer(requests.decode(line))
                    if said is None:
                        break
                    writer.write(said)
            writer.close()

        serving = asyncio.get_running_loop().create_task(serve())
        client = ControlClient(ours)
        try:
            return await act(client)
        finally:
            await client.close()
            await asyncio.wait_for(serving, 5)

    return asyncio.run(run())


def done(command: Command) -> Reply:
    return Reply(
        Done(command, (command.node,)),
        undone_by=Command(CommandKind.START, command.node),
        active=(ActiveFault(command.node, FaultState.CRASHED), ActiveFault(2, FaultState.SLOW, 200)),
    )


def obedient(request: Request) -> bytes:
    assert isinstance(request, Command)
    return encode(done(request))


def test_the_reply_has_what_was_done_how_to_undo_it_and_the_faults_in_force() -> None:
    assert talk(obedient, lambda client: client.apply(CRASH)) == done(CRASH)


def test_a_refusal_is_a_kind_with_values() -> None:
    error = BadUse(ErrorKind.RACK_UNKNOWN, rack="R9", racks=("R1", "R2")).facts
    reply = talk(lambda request: encode(Reply(refused=error)), lambda client: client.apply(CRASH))
    assert reply.done is None and reply.refused == error


def test_status_and_counters() -> None:
    status, counters = Status(6, 3, 0, (), True), Counters({"topics": {"invoice": 3}})

    def answer(request: Request) -> bytes:
        return encode(status) if request == Ask.STATUS else encode(counters)

    async def both(client: ControlClient) -> tuple[Status, Counters]:
        return await client.status(), await client.counters()

    assert talk(answer, both) == (status, counters)


def test_commands_given_at_once_get_each_its_own_answer() -> None:
    async def several(client: ControlClient) -> list[Reply]:
        commands = [Command(CommandKind.CRASH, node) for node in range(20)]
        return list(await asyncio.gather(*(client.apply(command) for command in commands)))

    assert [reply.done.nodes for reply in talk(obedient, several) if reply.done] == [(n,) for n in range(20)]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, ErrorKind.CLUSTER_ENDED),
        (b"ok broker 4 was killed\n", ErrorKind.CLUSTER_GARBLED),
        (encode(Status(6, 3, 0, (), True)), ErrorKind.CLUSTER_GARBLED),
        (b"x" * (2 * MAX_MESSAGE_BYTES), ErrorKind.CLUSTER_GARBLED),
    ],
    ids=["gone", "prose", "another reply", "too long"],
)
def test_a_channel_that_carries_no_answers_says_so_for_good(answer: bytes | None, kind: ErrorKind) -> None:
    async def twice(client: ControlClient) -> tuple[Reply, Reply]:
        return await client.apply(CRASH), await client.apply(CRASH)

    first, second = talk(lambda request: answer, twice)
    assert first.refused is not None and first.refused.kind is kind
    assert second == first


def test_status_raises_what_apply_replies() -> None:
    with pytest.raises(KviewError) as caught:
        talk(lambda request: None, lambda client: client.status())
    assert caught.value.kind is ErrorKind.CLUSTER_ENDED


def test_a_cluster_that_hangs_for_a_while_takes_faults_again_and_no_answer_is_mistaken_for_another() -> None:
    stop, start = Command(CommandKind.STOP, 2), Command(CommandKind.START, 4)

    async def run() -> None:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)
        client = ControlClient(ours, timeout_s=0.1)
        late, unsent = await client.apply(CRASH), await client.apply(stop)
        assert late.refused is not None and unsent.refused is not None
        assert sentence(late.refused) == (
            "the simulated cluster did not answer within 0 s: "
            "it may still do what was asked; try again in a moment"
        )
        assert sentence(unsent.refused) == (
            "the simulated cluster is still not answering, so this was not sent: try again in a moment"
        )
        writer.write(obedient(requests.decode(await reader.readline())))
        patient = asyncio.create_task(_until_answered(client, start))
        asked = requests.decode(await asyncio.wait_for(reader.readline(), 5))
        assert asked == start, "what was said not to be sent was not sent"
        writer.write(obedient(asked))
        assert await asyncio.wait_for(patient, 5) == done(start)
        writer.close()
        await client.close()

    asyncio.run(run())


async def _until_answered(client: ControlClient, command: Command) -> Reply:
    """The reply to a command, which is asked for again as long as it cannot be sent."""
    while (reply := await client.apply(command)).refused is not None:
        assert reply.refused.kind is ErrorKind.CLUSTER_BUSY
    return reply
