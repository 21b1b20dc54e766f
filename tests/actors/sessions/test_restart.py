"""A device that restarts loses its state; running steps fail with AbortedError, and later ones work."""

from __future__ import annotations

import numpy as np
import pytest
import trio

from partita.actors import Session
from partita.actors.sessions.preparation import Prepared
from partita.actors.sessions.prepared_requests import Check
from partita.actors.sessions.requests import RequestNames
from partita.errors import AbortedError, FailedPreconditionError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef, RunMetadata, RunOptions
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.actors.sessions.processes.graphs import variables_on_two_devices
from tests.hangs import all_waiting
from tests.strategies import cpu

FLOAT = DataType.FLOAT


def graph() -> GraphDef:
    """A variable on each of two devices, and an empty queue on the second."""
    builder, x = variables_on_two_devices()
    queue = builder.op("FIFOQueueV2", component_types=[FLOAT], shapes=[()], device=cpu(1))[0]
    builder.op("QueueDequeueV2", queue, component_types=[FLOAT], name="take", device=cpu(1))
    builder.op("GetSessionHandle", x, name="keep0", device=cpu(0))
    held = builder.placeholder("held", "string", (), device=cpu(0))
    builder.op("GetSessionTensor", held, name="get", dtype=FLOAT, device=cpu(1))
    return builder.graph_def()


async def set_both(session: Session) -> None:
    await session.run([], {"x": np.float32(3)}, ["set0", "set1"])


@on_every_deployment
async def test_a_restarted_device_has_forgotten_its_variables_and_no_other_has(deployment: Deployment) -> None:
    async with deployment.open(graph(), 2) as session:
        await set_both(session)
        (handle,) = await session.run("keep0", {"x": np.float32(5)})
        assert (await session.run("get", {"held": handle}))[0] == 5
        session.restart_device(deployment.device(1))
        assert (await session.run("neg0"))[0] == -3
        assert (await session.run("get", {"held": handle}))[0] == 5
        with pytest.raises(FailedPreconditionError):
            await session.run("neg1")
        await set_both(session)
        assert (await session.run("neg1"))[0] == -3
        session.restart_device(deployment.device(0))
        with pytest.raises(InvalidArgumentError, match="is not in the session store"):
            await session.run("get", {"held": handle})


@on_every_deployment
async def test_a_step_under_way_is_aborted_and_can_be_run_again(deployment: Deployment) -> None:
    async with deployment.open(graph(), 2) as session:
        failed: list[BaseException] = []

        async def take() -> None:
            with pytest.raises(AbortedError, match="expects a different device incarnation: 1 vs") as caught:
                await session.run("take")
            failed.append(caught.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await all_waiting()
            session.restart_device(deployment.device(1))
        assert len(failed) == 1
        assert session.statistics().steps_running == 0


@on_every_deployment
async def test_the_keys_of_later_steps_carry_the_new_incarnation(deployment: Deployment) -> None:
    async with deployment.open(graph(), 2) as session:
        await set_both(session)

        async def incarnations() -> set[int]:
            metadata, options = RunMetadata(), RunOptions(output_partition_graphs=True)
            await session.run("neg0", options=options, metadata=metadata)
            nodes = [node for part in metadata.partition_graphs for node in part.node]
            sent = [
                n.attr for n in nodes if n.op == "_Recv" and n.attr["send_device"].s == deployment.device(0).encode()
            ]
            return {attr["send_device_incarnation"].i for attr in sent}

        assert await incarnations() == {1}
        session.restart_device(deployment.device(0))
        await set_both(session)
        assert await incarnations() == {2}


@on_every_deployment
async def test_an_unknown_device_cannot_restart(deployment: Deployment) -> None:
    async with deployment.open(graph(), 2) as session:
        with pytest.raises(InvalidArgumentError):
            session.restart_device(deployment.device(7))


@on_every_deployment
async def test_a_restart_fails_only_the_steps_that_use_the_device(deployment: Deployment) -> None:
    """Two steps wait at queues of a device each."""
    b = GraphBuilder()
    for k in range(2):
        queue = b.op("FIFOQueueV2", component_types=[FLOAT], shapes=[()], shared_name=f"q{k}", device=cpu(k))[0]
        b.op("QueueDequeueV2", queue, component_types=[FLOAT], name=f"take{k}", device=cpu(k))
        b.op("QueueEnqueueV2", queue, [b.constant(7.0, "float32", device=cpu(k))], name=f"put{k}", device=cpu(k))
    got: dict[int, object] = {}

    async with deployment.open(b.graph_def(), 2) as session:

        async def take(k: int) -> None:
            try:
                got[k] = float((await session.run(f"take{k}"))[0])
            except AbortedError as error:
                got[k] = error.message

        async with trio.open_nursery() as nursery:
            for k in range(2):
                nursery.start_soon(take, k)
            await all_waiting()
            session.restart_device(deployment.device(1))
            await all_waiting()
            assert list(got) == [1]
            await session.run([], targets="put0")
        assert deployment.device(1) in str(got[1])
        assert got[0] == 7


@pytest.mark.parametrize("restarted", [0, 1])
async def test_a_restart_while_a_step_is_prepared(restarted: int) -> None:
    """A step that uses the device fails and names it; any other is prepared again, and runs."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    for number in range(200):
        x = b.op("Neg", x, name=f"y{number}", device=cpu(0))[0]
    b.op("Neg", x, name="elsewhere", device=cpu(1))
    async with Deployment.LOCAL.open(b.graph_def(), 2) as session:
        device, prepare = Deployment.LOCAL.device(restarted), session._requests._prepare
        restarts = iter([device])

        def prepare_and_restart(names: RequestNames, check: Check) -> Prepared:
            prepared = prepare(names, check)
            for name in restarts:  # the first time only
                trio.from_thread.run_sync(session.restart_device, name)
            return prepared

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session._requests, "_prepare", prepare_and_restart)
            if restarted:
                assert (await session.run("y199", {"x": np.float32(3)}))[0] == 3
            else:
                with pytest.raises(AbortedError, match=device):
                    await session.run("y199", {"x": np.float32(3)})
        assert (await session.run("elsewhere", {"x": np.float32(3)}))[0] == -3
