"""A reset removes what devices hold in containers and ends the session, as TensorFlow's does."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from partita.actors import BlockingSession
from partita.errors import CancelledError, NotFoundError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.strategies import cpu


def variables() -> GraphDef:
    """Two resource variables, x in the default container and y in a container of its own, and an empty queue."""
    b = GraphBuilder()
    for name, container, device in (("x", "", cpu(0)), ("y", "own", cpu(1))):
        handle = b.op(
            "VarHandleOp", dtype="float32", shape=(), container=container, shared_name=name, name=name, device=device
        )
        b.op("AssignVariableOp", handle, 1.0, name=f"{name}/assign", device=device)
    queue = b.op("FIFOQueueV2", component_types=["float32"], name="queue", device=cpu(0))
    b.op("QueueDequeueV2", queue, component_types=["float32"], name="wait", device=cpu(0))
    return b.graph_def()


@on_every_deployment
@pytest.mark.parametrize(("containers", "left"), [((), ["own"]), (["own", "nope"], ["localhost"]), (["none"], None)])
async def test_a_reset_clears_containers_and_closes_the_session(
    deployment: Deployment, containers: list[str], left: list[str] | None
) -> None:
    async with deployment.open(variables(), 2) as session:
        await session.run((), targets=["x/assign", "y/assign"])
        errors: list[PartitaError] = []

        async def wait() -> None:
            with pytest.raises(CancelledError, match=r"^Session has been closed\.") as ended:
                await session.run("wait")
            errors.append(ended.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            session.reset(containers)
        assert len(errors) == 1
        states = [actor.binder.state for worker in session.workers.values() for actor in worker.actors.values()]
        kept = {container for state in states for container, _, name in state.resources if name in ("x", "y")}
        assert kept == set(["localhost", "own"] if left is None else left)
        with pytest.raises(CancelledError, match=r"^Session has been closed\."):
            await session.run("x")


def test_a_session_without_event_loop_is_reset() -> None:
    with BlockingSession(variables(), "cpu:2") as session:
        session.run((), targets="x/assign")
        session.reset()
        with pytest.raises(CancelledError, match=r"^Session has been closed\."):
            session.run((), targets="x/assign")


async def test_a_container_that_was_reset_is_known_but_empty() -> None:
    """The message about a missing resource differs from that about a container which never was."""
    async with Deployment.LOCAL.open(variables(), 2) as session:
        await session.run((), targets="y/assign")
        (worker,) = session.workers.values()
        state = worker.actors[session.devices[1]].binder.state
        session.reset(["own"])
        with pytest.raises(NotFoundError, match=r"^Resource own/y/"):
            state.resource(("own", "", "y"))
