"""More rows "sessions/hold, ...": what else a host asks of a session, and how long that holds its event loop.

first Cast        the first step casts 200 MB
a feed            200 MB of which are fed, to a request that keeps its feeds
graph_def         of a large graph, written in a thread
a message opened  a large graph as a GraphDef instead of its bytes
virtual clock     a graph over 8 devices on simulated hardware, and its timeline
"""

from __future__ import annotations

import numpy as np

from partita.actors import open_session
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder

from .bench import Bench
from .holding import Beats, held
from .rows import Case, Measured, limit
from .running import Ours
from .workloads import drawn

_VIRTUAL_STEPS = 3


async def _first_cast(bench: Bench) -> Measured:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None,))
    b.op("Max", b.op("Cast", x, SrcT="float32", DstT="float64")[0], [0], name="most")
    fed = np.ones(bench.sizes.mapped_bytes // 4, np.float32)

    async def hold(beats: Beats) -> None:
        async with open_session(b.graph_def(), "cpu:1") as session:
            beats.longest()
            await session.run("most", {"x": fed})

    return await held(bench, hold)


async def _feed(bench: Bench) -> Measured:
    """A variable is set to what is fed, so that the session copies it."""
    b = GraphBuilder()
    variable = b.variable("variable", "float32", (bench.sizes.mapped_bytes // 4,))
    b.op("Assign", variable, b.placeholder("x", "float32", (None,)), name="assigned")
    fed = np.ones(bench.sizes.mapped_bytes // 4, np.float32)

    async def hold(beats: Beats) -> None:
        async with open_session(b.graph_def(), "cpu:1") as session:
            beats.longest()
            for _ in range(2):
                await session.run([], {"x": fed}, targets="assigned")

    return await held(bench, hold)


async def _graph_def(bench: Bench) -> Measured:
    workload = drawn(bench.sizes.graph_nodes, (), devices=8)

    async def hold(beats: Beats) -> None:
        async with open_session(workload.data, "cpu:8") as session:
            beats.longest()
            graph_def = await session.graph_def_in_thread()
            assert len(graph_def.node) == workload.nodes + 1
            longest = beats.longest()
            del graph_def  # protobuf frees it at once
        beats.longest()
        beats.add(longest)

    return await held(bench, hold)


async def _message(bench: Bench) -> Measured:
    message = GraphDef.FromString(drawn(bench.sizes.graph_nodes, (), devices=8).data)

    async def hold(beats: Beats) -> None:
        async with open_session(message, "cpu:8"):
            longest = beats.longest()
        beats.longest()
        beats.add(longest)

    return await held(bench, hold)


async def _virtual_clock(bench: Bench) -> Measured:
    workload = drawn(bench.sizes.program_nodes, (), devices=8)

    async def hold(beats: Beats) -> None:
        async with open_session(workload.data, "cpu:8", clock="virtual") as session:
            ours = Ours(session, workload)
            for _ in range(_VIRTUAL_STEPS):
                await ours.step()
            await session.timeline_in_thread()
            longest = beats.longest()
        beats.longest()
        beats.add(longest)

    return await held(bench, hold)


_HOLD = limit(0.010, 0.006)
CASES = [
    Case("sessions/hold, first Cast of 200 MB", "", _HOLD, _first_cast),
    Case("sessions/hold, a feed of 200 MB", "", _HOLD, _feed),
    Case("sessions/hold, graph_def of a large one", "", _HOLD, _graph_def),
    Case("sessions/hold, a message opened", "", _HOLD, _message),
    Case("sessions/hold, virtual clock", "", _HOLD, _virtual_clock),
]
