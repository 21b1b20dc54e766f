"""Story: eight GPUs reduce their gradients at the end of the backward pass, or while it goes on.

A gradient can travel as soon as it is there, while the GPU computes those of the layers before. With one bucket for all
of them nothing can: the first gradient waits for the last. With buckets of 25 MiB a step takes about as long as the
longer of computing and communicating. Run it with `python -m partita.scenarios.stories.overlap`.
"""

from __future__ import annotations

from ...devices import collective_time, cut, local_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_bytes, format_ns
from ...graph import replicate
from ..report import columns, device_bars
from ..workloads.deep_training import deep_training
from .catalog import Story

LAYERS, WIDTH = 16, 2048
GPUS = [f"/device:GPU:{k}" for k in range(8)]
CLUSTER = local_cluster("cpu:1,gpu:8", gpu="H100-SXM")
GPU = CLUSTER.find("gpu:0").name
BUCKETS = {"one bucket": 1 << 40, "25 MiB buckets": 25 << 20}
BATCHES = (8192, 16384, 32768)


def story() -> Story:
    """The lines of the story."""
    size = 4 * WIDTH * WIDTH
    total = format_bytes(LAYERS * size)
    yield f"a perceptron of {LAYERS} layers {WIDTH} wide, on {len(GPUS)} GPUs: {total} of gradients"
    for bytes_, what in ((size, "of one layer"), (LAYERS * size, "of all layers")):
        alone = collective_time("all_reduce", GPUS, bytes_, CLUSTER)
        yield f"an all-reduce of the gradients {what} takes {format_ns(alone.time_ns)} alone"
    steps = {name: _steps(bucket_bytes) for name, bucket_bytes in BUCKETS.items()}
    yield "a step, and the communication that gpu:0 waits for (exposed) or computes beside (hidden)"
    rows = [_row(batch, name, timelines[batch]) for batch in BATCHES for name, timelines in steps.items()]
    yield from columns(
        [("rows", "reduced in", "step time", "computing", "exposed", "hidden", "peak memory"), *rows], left=2
    )
    for name, timelines in steps.items():
        yield f"gpu:0 with {BATCHES[1]} rows, {name}"
        yield from device_bars(timelines[BATCHES[1]], CLUSTER, "gpu:0", ("compute", "communication:1"))
    yield "what one sees"
    yield "  One bucket: nothing is hidden, a step takes computing plus communicating. To join the gradients and"
    yield "  to take them apart again costs computing too, and memory."
    small = collective_time("all_reduce", GPUS, size, CLUSTER).time_ns
    yield f"  Buckets: {LAYERS} all-reduces of {format_ns(small)} are {format_ns(LAYERS * small)}, more than one of all"
    yield "  layers, but they begin with the first gradient. A step takes about the longer of two: computing, or what"
    yield "  comes before the first gradient plus communicating. Updates of layers that are reduced hide the last ones."
    for batch in BATCHES:
        late, early = (timelines[batch].makespan_ns for timelines in steps.values())
        yield f"  {batch} rows: buckets save {100 * (1 - early / late):.0f} % of the step."
    return steps["25 MiB buckets"][BATCHES[1]]


def _steps(bucket_bytes: int) -> dict[int, Timeline]:
    """A timeline for each size of the batch; the graph is the same for all."""
    graph = replicate(deep_training(LAYERS, WIDTH), GPUS, batch="ids", loss="loss", bucket_bytes=bucket_bytes)
    parts = cut(graph, CLUSTER, feeds=["ids"], fetches=["loss"], targets=["train"])
    return {batch: simulate(parts, CLUSTER, feeds={"ids": (batch,)}) for batch in BATCHES}


def _row(batch: int, name: str, timeline: Timeline) -> tuple[str, ...]:
    exposed, hidden = timeline.communication(GPU)
    busy = round(timeline.busy_fraction(GPU) * timeline.makespan_ns)
    times = (timeline.makespan_ns, busy, exposed, hidden)
    return str(batch), name, *map(format_ns, times), format_bytes(timeline.peak_memory_bytes(GPU))


if __name__ == "__main__":
    print("\n".join(story()))
