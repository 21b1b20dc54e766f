"""The rows "virtual/...": a step on a virtual clock, and its timeline afterwards, per node, iteration or call.

8 devices    a drawn graph, most of whose edges cross devices
loop         a while loop, whose iterations each have eight nodes
calls        calls of a function of one node, one after the other
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from partita.actors import open_session

from .bench_loops import loop
from .rows import Case, Figure, Measured, limit
from .running import Ours
from .sampling import Run, Sample, interleave, now
from .workloads import Workload, called, drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench, Sizes

_SHAPE = (64,)

_WORKLOADS: dict[str, Callable[[Sizes], Workload]] = {
    "8 devices": lambda sizes: drawn(sizes.program_nodes, _SHAPE, devices=8),
    "loop": lambda sizes: loop(sizes.iterations),
    "calls": lambda sizes: called(sizes.iterations, _SHAPE),
}


async def _measured(bench: Bench, workload: str, figure: str) -> Measured:
    asked = _WORKLOADS[workload](bench.sizes)
    async with open_session(asked.data, f"cpu:{asked.devices}", clock="virtual") as session:
        ours = Ours(session, asked)
        await ours.step()

        async def step() -> Sample:
            return await ours.steps(1)

        async def timeline() -> Sample:
            before = now()
            session.timeline()
            return now() - before

        runs: dict[str, Run] = {"step": step, "timeline": timeline}
        taken = await interleave({"ours": runs[figure]}, bench.sizes.rounds)
    return Measured(Figure.of(taken["ours"], asked.nodes))


CASES = [
    Case("virtual/8 devices", "", limit(100e-6, 50e-6), partial(_measured, workload="8 devices", figure="step")),
    Case("virtual/loop", "", limit(600e-6, 300e-6), partial(_measured, workload="loop", figure="step")),
    Case("virtual/calls", "", limit(300e-6, 150e-6), partial(_measured, workload="calls", figure="step")),
    Case(
        "virtual/8 devices, timeline",
        "",
        limit(20e-6, 5e-6),
        partial(_measured, workload="8 devices", figure="timeline"),
    ),
    Case("virtual/loop, timeline", "", limit(300e-6, 150e-6), partial(_measured, workload="loop", figure="timeline")),
    Case("virtual/calls, timeline", "", limit(300e-6, 150e-6), partial(_measured, workload="calls", figure="timeline")),
]
