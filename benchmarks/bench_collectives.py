"""The row "collective/all-reduce": what an all-reduce over eight devices adds to a step.

Every device has a value of 1 MiB, and a step with the all-reduce is compared with the same step in which each value
passes an Identity. The peer adds the eight arrays into the first one, in order, as the all-reduce must.
"""

from __future__ import annotations

import numpy as np

from partita.actors import open_session
from partita.graph.builder import GraphBuilder

from .bench import Bench
from .rows import IN_PLACE, Case, Figure, Measured, share
from .running import Ours, check_equal, repeated
from .sampling import Sample, interleave, now
from .workloads import Workload, device_name

_DEVICES = 8


def summed(size: int, *, is_reduced: bool) -> Workload:
    """A value of `size` floats on each device, and from it the sum over all, or itself; one element is fetched."""
    b = GraphBuilder()
    for n in range(_DEVICES):
        with b.device(device_name(n)):
            variable = b.op("VarHandleOp", dtype="float32", shape=(size,), shared_name=f"x{n}")[0]
            b.op("AssignVariableOp", variable, b.op("Fill", [size], float(n + 1))[0], name=f"init{n}")
            x = b.op("ReadVariableOp", variable, dtype="float32")[0]
            if is_reduced:
                y = b.op("CollectiveReduceV2", x, _DEVICES, 1, 1, [], merge_op=b"Add", final_op=b"Id")[0]
            else:
                y = b.identity(x)
            b.op("Slice", y, [0], [1], name=f"first{n}")
    name = f"{'sums' if is_reduced else 'values'} of {size}"
    targets = tuple(f"first{n}" for n in range(1, _DEVICES))
    return Workload(name, b.graph_def().SerializeToString(deterministic=True), 1, {}, ("first0:0",), targets, _DEVICES)


async def _all_reduce(bench: Bench) -> Measured:
    size = bench.sizes.reduced_floats
    reduced, passed = summed(size, is_reduced=True), summed(size, is_reduced=False)
    async with (
        open_session(reduced.data, f"cpu:{_DEVICES}") as far,
        open_session(passed.data, f"cpu:{_DEVICES}") as near,
    ):
        for session in (far, near):
            await session.run([], targets=[f"init{n}" for n in range(_DEVICES)])
        with_it, without = Ours(far, reduced), Ours(near, passed)
        check_equal(await with_it.step(), [[sum(range(1, _DEVICES + 1))]])
        runs = {"with": with_it.steps, "without": without.steps, "in place": InPlace(size).steps}
        taken = await interleave({name: await repeated(bench, steps) for name, steps in runs.items()}, 7)
    more = taken["with"] - taken["without"]
    least = 1e-9  # of tiny sizes the noise may be larger than the difference
    return Measured(Figure.of(Sample(max(more.wall_s, least), max(more.cpu_s, least))), Figure.of(taken["in place"]))


class InPlace:
    """Eight arrays, of which the first becomes the sum."""

    def __init__(self, size: int) -> None:
        self._total, *self._others = (np.full(size, n + 1, np.float32) for n in range(_DEVICES))

    async def steps(self, count: int) -> Sample:
        """Time of adding the arrays up `count` times."""
        total, others = self._total, self._others
        before = now()
        for _ in range(count):
            for other in others:
                np.add(total, other, out=total)
        return now() - before


CASES = [Case("collective/all-reduce of 1 MiB", IN_PLACE, share(2.0, 1.4), _all_reduce)]
