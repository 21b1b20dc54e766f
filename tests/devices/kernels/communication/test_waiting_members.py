"""Members of collectives that wait for others are counted, with the tensors they hold, by `Session.statistics`."""

from __future__ import annotations

import numpy as np
import pytest
import trio

from partita.actors import Session
from partita.errors import DeadlineExceededError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.strategies import cpu

LATE, BYTES = 2, 40


def late_member(**limit: float) -> GraphBuilder:
    """Sums y0, y1 and y2 over three CPUs, of which the last takes its value from a queue that "put" fills."""
    b = GraphBuilder()
    for n in range(LATE + 1):
        with b.device(cpu(n)):
            x = b.constant(np.full(BYTES // 4, n, np.float32))
            if n == LATE:
                queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[(BYTES // 4,)])[0]
                b.op("QueueEnqueueV2", queue, [x], name="put")
                x = b.op("QueueDequeueV2", queue, component_types=["float32"])[0]
            y = b.op("CollectiveReduceV2", x, LATE + 1, 1, 1, [], merge_op=b"Add", final_op=b"Id", **limit)
            b.identity(y[0], name=f"y{n}")
    return b


def waiting(session: Session) -> tuple[int, int, int, int]:
    """Members and bytes that wait, now and at most."""
    counts = session.statistics()
    return counts.members_waiting, counts.bytes_waiting, counts.most_members_waiting, counts.most_bytes_waiting


@on_every_deployment
async def test_what_waits_is_counted_until_the_last_member_has_come(deployment: Deployment) -> None:
    """Over all steps at once; a step that is cancelled takes its members away."""
    async with deployment.open(late_member().graph_def(), 3) as session, trio.open_nursery() as nursery:
        assert waiting(session) == (0, 0, 0, 0)
        nursery.start_soon(session.run, ["y0", "y1", "y2"])
        await trio.testing.wait_all_tasks_blocked()
        assert waiting(session) == (2, 2 * BYTES, 2, 2 * BYTES)
        scope = trio.CancelScope()

        async def second() -> None:
            with scope:
                await session.run(["y0", "y1", "y2"])

        nursery.start_soon(second)
        await trio.testing.wait_all_tasks_blocked()
        assert waiting(session) == (4, 4 * BYTES, 4, 4 * BYTES)
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert waiting(session) == (2, 2 * BYTES, 4, 4 * BYTES)
        await session.run([], targets=["put"])
        await trio.testing.wait_all_tasks_blocked()
        assert waiting(session) == (0, 0, 4, 4 * BYTES)


async def test_a_member_whose_time_is_up_waits_no_more(autojump_clock: object) -> None:
    """Nor do the others of its step."""
    async with Deployment.LOCAL.open(late_member(timeout_seconds=1.0).graph_def(), 3) as session:
        with pytest.raises(DeadlineExceededError, match="1 of 3 members has not come"):
            await session.run(["y0", "y1", "y2"])
        assert waiting(session) == (0, 0, 2, 2 * BYTES)


async def test_a_group_that_can_never_be_complete_waits_no_more() -> None:
    """Its step has failed, and what it held is gone."""
    b = GraphBuilder()
    key = b.placeholder("key", "int32", ())
    with b.device(cpu(0)):
        b.op("CollectiveReduceV2", np.ones(10), 2, key, 1, [], merge_op=b"Add", final_op=b"Id", name="y")
    async with Deployment.LOCAL.open(b.graph_def(), 1) as session:
        with pytest.raises(InvalidArgumentError, match="nothing else can go on"):
            await session.run("y", {"key": 1})
        assert waiting(session) == (0, 0, 1, 80)
