"""Sessions over several tasks compute what a local session computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trio
from google.protobuf import text_format
from hypothesis import given, settings

from partita.actors import open_session
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.actors.sessions.session import Session
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.errors import AbortedError, CancelledError, InvalidArgumentError, NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef, GraphOptions, OptimizerOptions
from partita.rendezvous import LocalRendezvous
from tests.actors.programs import Program, programs
from tests.hangs import all_waiting
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import GraphCase, cpu, placed_cases

TASKS, PER_TASK = 2, 2


def cluster() -> Cluster:
    """Two tasks of two CPUs, each with another incarnation."""
    spec = device_spec("generic-cpu")
    return Cluster(
        [
            Device(spec, index, task=task, incarnation=10 * task + index + 1)
            for task in range(TASKS)
            for index in range(PER_TASK)
        ]
    )


def over_tasks(graph: GraphDef) -> GraphDef:
    """Moves a graph from the four CPUs of one task to those of two."""
    moved = {cpu(n): cluster().names[n] for n in range(TASKS * PER_TASK)}
    spread = GraphDef.FromString(graph.SerializeToString())
    for node in spread.node:
        node.device = moved.get(node.device, node.device)
    return spread


async def both(graph: GraphDef, fetches: Any, feeds: Any, targets: Any = ()) -> tuple[list[Any], list[Any]]:
    """The fetches of a session over two tasks, of its second step, and those of a local session."""
    async with open_session(graph, "cpu:4", config=HARD_PLACEMENT) as local:
        expected = await local.run(fetches, feeds, targets)
    async with open_cluster_session(over_tasks(graph), cluster(), config=HARD_PLACEMENT) as session:
        await session.run(fetches, feeds, targets)
        return await session.run(fetches, feeds, targets), expected


@given(placed_cases())
async def test_a_cluster_computes_what_one_task_does(placed: tuple[GraphCase, dict[str, str]]) -> None:
    case, placement = placed
    ours = await both(case.on(placement), case.fetches, case.feeds, case.targets)
    assert_same_values(*ours)


@settings(max_examples=10)
@given(placed_cases())
async def test_optimised_parts_and_scheduled_receives_change_no_value(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """The start times are the earliest that the master computes."""
    case, placement = placed
    graph, request = case.on(placement), (case.fetches, case.feeds, case.targets)
    options = GraphOptions(enable_recv_scheduling=True, optimizer_options=OptimizerOptions())
    config = ConfigProto(allow_soft_placement=False, graph_options=options)
    async with open_session(graph, "cpu:4", config=HARD_PLACEMENT) as local:
        expected = await local.run(*request)
    async with open_cluster_session(over_tasks(graph), cluster(), config=config) as session:
        actual = await session.run(*request)
        parts = session.prepare(list(case.feeds), case.fetches, case.targets).partition_graphs()
        assert all(any(node.op == "ControlTrigger" for node in part.node) for part in parts)
        assert_same_values(*(actual, expected))


@given(programs())
async def test_loops_and_conditionals_go_over_tasks(case: Program) -> None:
    """A dead fetch is an error in both."""
    async with (
        open_session(case.graph_def, "cpu:4") as local,
        open_cluster_session(over_tasks(case.graph_def), cluster()) as session,
    ):
        for name in dict.fromkeys(case.fetches):
            try:
                expected = await local.run(name, case.feeds)
            except InvalidArgumentError:
                with pytest.raises(InvalidArgumentError, match="was not valid"):
                    await session.run(name, case.feeds)
            else:
                assert_same_values(await session.run(name, case.feeds), expected)


CALLS = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } device: "%s" }
node {
  name: "call" op: "PartitionedCall" input: "x" device: "%s"
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "quadrupled" } } }
}
node { name: "y" op: "Neg" input: "call" device: "%s" attr { key: "T" value { type: DT_FLOAT } } }
library {
  function {
    signature { name: "doubled" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "sum" op: "AddV2" input: "a" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "sum:z:0" }
  }
  function {
    signature { name: "quadrupled" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "once" op: "doubled" input: "a" }
    node_def { name: "twice" op: "doubled" input: "once:r:0" }
    ret { key: "r" value: "twice:r:0" }
  }
}
versions { producer: 2474 }
"""


@pytest.mark.parametrize("device", range(TASKS * PER_TASK))
async def test_workers_call_functions(device: int) -> None:
    """Each share has its function library."""
    graph = text_format.Parse(CALLS % (cpu(0), cpu(device), cpu(1)), GraphDef())
    ours, local = await both(graph, "y", {"x": TWO})
    assert_same_values(ours, local)
    assert ours[0].tolist() == [-4, -4]


def ring(length: int = 8) -> GraphDef:
    """x -> n0 -> n1 ... around all devices; `two` fails for every size but two; `count` is on the last device."""
    b = GraphBuilder()
    value = b.placeholder("x", "float32", device=cpu(0))
    for i in range(length):
        value = b.op("Neg", value, name=f"n{i}", device=cpu(i % 4))[0]
    b.op("Reshape", value, b.constant([2], device=cpu(3)), name="two", device=cpu(3))
    count = b.variable("count", "float32", (), device=cpu(3))
    b.op("Assign", count, b.constant(0.0, device=cpu(3)), name="reset", device=cpu(3))
    b.op("AssignAdd", count, b.constant(1.0, device=cpu(3)), name="step", device=cpu(3))
    return over_tasks(b.graph_def())


ONE, TWO = np.ones(1, np.float32), np.ones(2, np.float32)


async def works(session: Session) -> None:
    """A step that must succeed."""
    assert [value.tolist() for value in await session.run(["two", "n0:0", "two"], {"x": TWO})] == [
        [1, 1],
        [-1, -1],
        [1, 1],
    ]


async def test_state_lives_on_workers_and_errors_end_one_step() -> None:
    """The client gets errors of workers and of requests; the next step works."""
    async with open_cluster_session(ring(), cluster()) as session:
        await session.run((), targets="reset")
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match=r"^Input to reshape is a tensor with 1 values") as caught:
                await session.run("two", {"x": ONE})
            assert (caught.value.node, caught.value.device) == ("two", cluster().names[3])
            assert await session.run((), targets="step") == []
            await works(session)
        assert await session.run("count") == [2.0]
        with pytest.raises(InvalidArgumentError, match="was not found in the Graph"):
            await session.run("nobody")
        with pytest.raises(NotFoundError, match="Some target nodes not found"):
            await session.run((), targets="nobody")
        with pytest.raises(InvalidArgumentError, match=r"^Expects arg\[0\] to be float but int32 is provided"):
            await session.run("two", {"x": np.ones(2, np.int32)})
    with pytest.raises(CancelledError, match=r"^Session has been closed"):
        await works(session)


async def test_a_worker_that_lost_its_graphs_gets_them_again() -> None:
    """One step is aborted, the next one registers them again."""
    async with open_cluster_session(ring(), cluster()) as session:
        await works(session)
        session.workers["/job:localhost/replica:0/task:1"].graphs.deregister_all()
        with pytest.raises(AbortedError, match=r"^Graph handle is not found: "):
            await works(session)
        await works(session)


@pytest.mark.parametrize("closes", [True, False])
async def test_a_step_ends_with_its_session_or_its_task(monkeypatch: pytest.MonkeyPatch, closes: bool) -> None:
    """All messages are lost, so the step cannot end by itself; no waiter is left after it."""
    rendezvous_of_steps: list[LocalRendezvous] = []

    class Silent(LocalRendezvous):
        __slots__ = ()

        def __init__(self) -> None:
            super().__init__()
            rendezvous_of_steps.append(self)

        def send(self, *_message: object) -> None:
            """Drops the message."""

    async with open_cluster_session(ring(), cluster()) as session:
        with monkeypatch.context() as patch:
            patch.setattr("partita.actors.sessions.workers.LocalRendezvous", Silent)
            async with trio.open_nursery() as nursery:

                async def step() -> None:
                    with pytest.raises(CancelledError if closes else trio.Cancelled):
                        await session.run("two", {"x": TWO})

                nursery.start_soon(step)
                await all_waiting()
                session.close() if closes else nursery.cancel_scope.cancel()
        assert [rendezvous.statistics().waiting for rendezvous in rendezvous_of_steps] == [0]
        if not closes:
            await works(session)
