"""Story: one of eight GPUs is slower, and all of them wait for it in the all-reduce.

A collective begins when its last member is ready, so a step takes as long as on the slowest device. It also says how to
find that device: it is the one that never waits. Run it with `python -m partita.scenarios.stories.straggler`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...devices import Cluster, cut, local_cluster, parse_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_ns
from ...graph import Graph, replicate
from ..report import columns, device_bars, limits
from ..workloads.deep_training import deep_training
from .catalog import Story

LAYERS, WIDTH, ROWS = 16, 2048, 16384
SLOW = 5
FACTORS = (1.0, 1.2, 1.5, 2.0)
GPUS = [f"/device:GPU:{k}" for k in range(8)]
CLUSTER = local_cluster("cpu:1,gpu:8", gpu="H100-SXM")


def story() -> Story:
    """The lines of the story."""
    yield f"a perceptron of {LAYERS} layers {WIDTH} wide, {ROWS} rows on {len(GPUS)} GPUs; gpu:{SLOW} is slower"
    graph = replicate(deep_training(LAYERS, WIDTH), GPUS, batch="ids", loss="loss")
    parts = cut(graph, CLUSTER, feeds=["ids"], fetches=["loss"], targets=["train"])
    steps = {factor: _step(parts, factor) for factor in FACTORS}
    yield from columns(
        [("times as long", "step time", "gpu:0 computes", f"gpu:{SLOW} computes"), *map(_row, steps.items())]
    )
    for factor in (FACTORS[0], FACTORS[-1]):
        yield "all equally fast" if factor == 1 else f"gpu:{SLOW} takes {factor:g} times as long"
        for k in (0, SLOW):
            bars = device_bars(steps[factor], CLUSTER, f"gpu:{k}", ("compute", "communication:1"))
            yield from (f"  gpu:{k}{line}" for line in bars)
        yield "  what limits the step"
        for what, ns in limits(steps[factor], _cluster(factor))[:3]:
            yield f"    {100 * ns / steps[factor].makespan_ns:5.1f} %  {what}"
    yield "what one sees"
    slow, fast = steps[FACTORS[-1]].makespan_ns, steps[FACTORS[0]].makespan_ns
    yield f"  The step is as slow as gpu:{SLOW}. The other seven are ready for the first all-reduce long before it, and"
    yield "  again for each after that: they wait, and none of them is at fault."
    yield f"  One GPU that takes {FACTORS[-1]:g} times as long costs all eight {100 * (slow / fast - 1):.0f} %."
    yield f"  Seven GPUs without it take about {len(GPUS)} / {len(GPUS) - 1} of {format_ns(fast)} for the same rows."
    return steps[FACTORS[-1]]


def _cluster(factor: float) -> Cluster:
    """The same devices, one of them slower; a factor of 1 changes nothing."""
    if factor == 1:
        return CLUSTER
    return parse_cluster(f"""
        [[device]]
        spec = "H100-SXM"
        count = {len(GPUS)}

        [[slow]]
        device = "gpu:{SLOW}"
        factor = {factor}
    """)


def _step(parts: Mapping[str, Graph], factor: float) -> Timeline:
    return simulate(parts, _cluster(factor), feeds={"ids": (ROWS,)})


def _row(item: tuple[float, Timeline]) -> tuple[str, ...]:
    factor, timeline = item
    shares = (f"{100 * timeline.busy_fraction(CLUSTER.find(f'gpu:{k}').name):.1f} %" for k in (0, SLOW))
    return f"{factor:g}", format_ns(timeline.makespan_ns), *shares


if __name__ == "__main__":
    print("\n".join(story()))
