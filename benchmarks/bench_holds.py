"""The rows "hold/...": the longest time for which a session holds its host's event loop, over several workloads.

It is that of the opening and the first step, while the session prepares and learns, and of later steps; `holding` says
how it is measured. Modules have been loaded before.
"""

from __future__ import annotations

from functools import partial

import trio

from partita.actors import open_session

from .bench import Bench
from .bench_loops import loop
from .holding import Beats, load_modules, longer
from .models import mlp, mobile_net, resnet50, towers
from .rows import Case, Figure, Measured, limit
from .running import Ours
from .workloads import Workload, chain, drawn, hops, pairs

_LEARNING = 12  # steps until slow kernels are known
_LATER = 5


def workloads(bench: Bench) -> list[Workload]:
    """Chains, random graphs, messages, loops and models."""
    sizes = bench.sizes
    image, divisor, nodes = sizes.image, sizes.width_divisor, sizes.program_nodes
    return [
        *(chain(nodes, shape, devices=devices) for shape in ((), (64,)) for devices in (1, 8)),
        *(drawn(nodes, shape, devices=devices) for shape in ((), (64,)) for devices in (1, 8)),
        hops(8),
        pairs(sizes.few_pairs, devices=2),
        *(loop(sizes.iterations, devices=devices) for devices in (1, 2)),
        *(mlp(batch, divisor) for batch in (1, 32, 256)),
        resnet50(image, divisor),
        mobile_net(image, divisor),
        towers(image // 4, divisor),
    ]


async def _longest_hold(bench: Bench, *, at_first: bool) -> Measured:
    longest = Figure(0, 0)
    await load_modules(bench)
    for workload in workloads(bench):
        beats = Beats()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beats.run)
            await trio.lowlevel.checkpoint()
            async with open_session(workload.data, f"cpu:{workload.devices}") as session:
                ours = Ours(session, workload)
                await ours.step()
                opening = beats.longest()
                for _ in range(_LEARNING):
                    await ours.step()
                beats.longest()
                for _ in range(_LATER):
                    await ours.step()
                longest = longer(longest, opening if at_first else beats.longest())
            nursery.cancel_scope.cancel()
    return Measured(longest)


CASES = [
    Case("hold/opening and first step", "", limit(0.010, 0.005), partial(_longest_hold, at_first=True)),
    Case("hold/later steps", "", limit(0.010, 0.005), partial(_longest_hold, at_first=False)),
]
