"""Messages between workers: one connection for two workers and a session, whoever asks first."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.actors.sessions.processes.talk import Talk, connected, message, two

if TYPE_CHECKING:
    from distributed import LocalCluster


@pytest.mark.parametrize("first", [0, 1])
async def test_workers_exchange_messages(cluster: LocalCluster, first: int) -> None:
    """From the one with the smaller process id, and from the other; what is posted before they are connected waits."""
    async with connected(cluster.scheduler_address) as opened:
        workers = await two(opened)
        talks = [Talk(await opened.open(worker)) for worker in workers]
        to, at = workers[1 - first].process_id, workers[1 - first].address
        for number in range(20):
            talks[first].post(message("relay", np.arange(number), to=to, at=at, number=number))
        talks[1 - first].post(message("expect", to=workers[first].process_id, at=workers[first].address))
        answers = await talks[first].hear(20)
        assert [answer.header["number"] for answer in answers] == list(range(20))
        assert all(answer.header["by"] == to for answer in answers)
        assert [answer.tensors[0].size for answer in answers] == list(range(20))


async def test_both_workers_ask_at_once(cluster: LocalCluster) -> None:
    """They share one connection, so all messages arrive."""
    async with connected(cluster.scheduler_address) as opened:
        workers = await two(opened)
        talks = [Talk(await opened.open(worker)) for worker in workers]
        for talk, other in zip(talks, reversed(workers), strict=True):
            talk.post(message("relay", to=other.process_id, at=other.address))
        for talk, other in zip(talks, reversed(workers), strict=True):
            assert (await talk.hear())[0].header["by"] == other.process_id


async def test_sessions_do_not_share_connections(cluster: LocalCluster) -> None:
    """Two sessions over the same two workers: each hears its own messages, also when the other one has ended."""
    async with connected(cluster.scheduler_address) as one:
        workers = await two(one)
        talk, _ = [Talk(await one.open(worker)) for worker in workers]
        others = {"to": workers[1].process_id, "at": workers[1].address}
        back = {"to": workers[0].process_id, "at": workers[0].address}
        async with connected(cluster.scheduler_address) as two_of_them:
            talks = [Talk(await two_of_them.open(worker)) for worker in await two(two_of_them)]
            talks[1].post(message("expect", **back))
            talks[0].post(message("relay", session=2, **others))
            assert (await talks[0].hear())[0].header["session"] == 2
            assert talk.batches == []


async def test_a_peer_that_dies_is_lost_and_one_that_is_not_there_too(cluster: LocalCluster) -> None:
    """The worker hears that the connection broke, or that nobody answers."""
    async with connected(cluster.scheduler_address) as opened:
        here, killed = sorted(await two(opened), key=lambda worker: worker.process_id)
        talk, other = Talk(await opened.open(here)), Talk(await opened.open(killed))
        other.post(message("expect", to=here.process_id, at=here.address))
        talk.post(message("relay", to=killed.process_id, at=killed.address))
        await talk.hear()
        os.kill(killed.pid, signal.SIGKILL)
        (lost,) = await talk.hear()
        assert lost.header["who"] == killed.process_id
        assert "broke" in str(lost.header["error"])
        talk.post(message("relay", to=killed.process_id, at=here.address))
        (lost,) = await talk.hear()
        assert "there is another process" in str(lost.header["error"])
