"""Messages between a session and worker processes: all arrive, in order, in batches; the end is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import trio

from partita.errors import DataLossError, InternalError, PartitaError, UnavailableError
from tests.actors.sessions.processes.talk import Talk, connected, message, two

if TYPE_CHECKING:
    from distributed import LocalCluster


async def test_messages_come_back_from_each_worker(cluster: LocalCluster) -> None:
    """A header and tensors go to each of two processes and come back equal."""
    async with connected(cluster.scheduler_address) as opened:
        workers = await two(opened)
        for worker in workers:
            talk = Talk(await opened.open(worker))
            talk.post(message("echo", np.arange(6.0).reshape(2, 3), np.int32(7), text="grüße"))
            (answer,) = await talk.hear()
            assert answer.header == {"op": "echo", "text": "grüße"}
            assert [each.tolist() for each in answer.tensors] == [[[0, 1, 2], [3, 4, 5]], 7]
        pids = [worker.pid for worker in workers]
        assert [worker.name for worker in workers] == ["0", "1"]
        assert len(set(pids)) == 2


async def test_posts_of_one_tick_travel_in_one_batch(cluster: LocalCluster) -> None:
    """What is posted at once arrives at once, both ways."""
    async with connected(cluster.scheduler_address) as opened:
        talk = Talk(await opened.open((await two(opened))[0]))
        for length in (1, 500, 2):
            talk.post(*(message("echo", number=number) for number in range(length)))
            answers = await talk.hear(length)
            assert [answer.header["number"] for answer in answers] == list(range(length))
        assert talk.batches == [1, 500, 2]
        assert (talk.connection.sent, talk.connection.received) == (503, 503)


async def test_order_is_kept(cluster: LocalCluster) -> None:
    """Over ticks and batches of many lengths."""
    async with connected(cluster.scheduler_address) as opened:
        talk = Talk(await opened.open((await two(opened))[0]))
        for number in range(300):
            talk.post(message("echo", *[np.zeros(number)] * (number % 3), number=number))
            if number % 7 == 0:
                await trio.lowlevel.checkpoint()
        assert [answer.header["number"] for answer in await talk.hear(300)] == list(range(300))


async def test_long_messages_arrive_whole(cluster: LocalCluster) -> None:
    """Sixteen megabytes come back bit for bit, between short messages."""
    async with connected(cluster.scheduler_address) as opened:
        talk = Talk(await opened.open((await two(opened))[0]))
        values = np.random.default_rng(1).integers(0, 256, 1 << 24, np.uint8)
        talk.post(message("echo", n=1), message("echo", values, n=2), message("echo", n=3))
        first, second, third = await talk.hear(3)
        assert [first.header["n"], second.header["n"], third.header["n"]] == [1, 2, 3]
        assert np.array_equal(second.tensors[0], values)


async def test_what_is_no_message_ends_the_connection(cluster: LocalCluster) -> None:
    """A message of dask, which dask itself would unpickle, is neither read nor answered: the connection ends."""
    async with connected(cluster.scheduler_address) as opened:
        worker = (await two(opened))[0]
        talk = Talk(await opened.open(worker))
        talk.post(message("mute"))
        error = await talk.lost()
        assert type(error) is DataLossError
        assert f"worker 0 at {worker.address}" in error.message
        assert "no message of Partita" in error.message


@pytest.mark.parametrize(
    ("op", "kind", "text"),
    [
        ("leave", UnavailableError, "closed the connection"),
        ("fail", UnavailableError, "closed the connection: FailedPreconditionError: told to fail"),
        ("bad", UnavailableError, "closed the connection: a message could not be handled"),
    ],
)
async def test_a_worker_that_ends_the_session_says_why(
    cluster: LocalCluster, op: str, kind: type[PartitaError], text: str
) -> None:
    """The session hears it once, after what was sent before, and may connect again."""
    async with connected(cluster.scheduler_address) as opened:
        worker = (await two(opened))[0]
        talk = Talk(await opened.open(worker))
        talk.post(message("echo"), message(op))
        error = await talk.lost()
        assert type(error) is kind
        assert text in error.message
        assert len(await talk.hear()) == 1
        again = Talk(await opened.open(worker))
        again.post(message("echo"))
        await again.hear()


async def test_an_error_of_who_hears_a_message_ends_the_connection_only(cluster: LocalCluster) -> None:
    """`on_messages` raises: `on_lost` gets that error, other connections go on."""
    async with connected(cluster.scheduler_address) as opened:
        first, second = [await opened.open(worker) for worker in await two(opened)]

        def refuse(messages: object) -> None:
            raise ZeroDivisionError("of a test")

        errors: list[PartitaError] = []
        first.start(refuse, errors.append)
        first.post(message("echo"))
        talk = Talk(second)
        while not errors:
            talk.post(message("echo"))
            await talk.hear()
        assert type(errors[0]) is InternalError
        assert "ZeroDivisionError: of a test" in errors[0].message
        assert first.is_over


async def test_nothing_is_heard_after_a_close(cluster: LocalCluster) -> None:
    """Neither messages nor the end; what was posted before is written."""
    async with connected(cluster.scheduler_address) as opened:
        first, second = await two(opened)
        talk = Talk(await opened.open(first))
        talk.post(message("echo"))
        await talk.connection.aclose()
        talk.post(message("echo"))
        other = Talk(await opened.open(second))
        other.post(message("echo"))
        await other.hear()
        assert talk.batches == []
        assert talk.error is None


async def test_messages_wait_for_start(cluster: LocalCluster) -> None:
    """What comes, and the end, before somebody wants to hear it, is told at the start."""
    async with connected(cluster.scheduler_address) as opened:
        first, second = await two(opened)
        connection = await opened.open(first)
        connection.post(message("echo", n=1))
        connection.post(message("leave"))
        other = Talk(await opened.open(second))
        while not connection.is_over:
            other.post(message("echo"))
            await other.hear()
        talk = Talk(connection)
        assert [each.header for each in await talk.hear()] == [{"op": "echo", "n": 1}]
        assert isinstance(await talk.lost(), UnavailableError)
