"""Story: what eight GPUs keep of parameters, gradients and optimizer state with ZeRO 0 to 3, and what it costs.

Adam keeps two numbers for each parameter. With 0 every GPU has all of them; 1 leaves it an eighth of those two, 2 also
of the gradients, 3 also of the parameters, which are gathered layer by layer when they are read (Rajbhandari et al.:
ZeRO, 2020). The values of a step are the same. Run it with `python -m partita.scenarios.stories.zero_stages`.
"""

from __future__ import annotations

from collections import Counter

from ...actors import BlockingSession
from ...devices import cut, local_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_bytes, format_ns
from ...graph import Graph, replicate
from ..report import columns, device_bars
from ..workloads.deep_training import deep_training, first_ids
from .catalog import Story

LAYERS, WIDTH, ROWS = 8, 2048, 8192
SMALL_LAYERS, SMALL_WIDTH, SMALL_ROWS, STEPS = 3, 16, 64, 4
GPUS = [f"/device:GPU:{k}" for k in range(8)]
CLUSTER = local_cluster("cpu:1,gpu:8", gpu="H100-SXM")
GPU = CLUSTER.find("gpu:0").name
LAYER_BYTES = 4 * WIDTH * WIDTH
STAGES = range(4)


def story() -> Story:
    """The lines of the story."""
    yield f"a small perceptron learns {SMALL_ROWS} rows with Adam: its loss, step by step"
    small = deep_training(SMALL_LAYERS, SMALL_WIDTH, "adam")
    rows = [("one GPU", *_losses(small)), *((f"ZeRO {z} on 8", *_losses(_sharded(small, z))) for z in (0, 3))]
    yield from columns([("", *(f"step {k + 1}" for k in range(STEPS))), *rows])
    total = LAYERS * LAYER_BYTES
    parameters, state = (format_bytes(factor * total) for factor in (1, 2))
    yield f"{LAYERS} layers {WIDTH} wide, {ROWS} rows: {parameters} of parameters, {state} of Adam's state"
    large = deep_training(LAYERS, WIDTH, "adam")
    steps = {z: _step(_sharded(large, z)) for z in STAGES}
    yield "what gpu:0 holds at the moment at which it holds most"
    yield from columns(
        [("ZeRO", "parameters", "Adam's state", "gradients", "activations", "peak"), *map(_held, steps.items())]
    )
    yield "the step"
    yield from columns(
        [("ZeRO", "step time", "exposed", "hidden", "collectives of gpu:0"), *map(_costs, steps.items())]
    )
    for z in (0, 3):
        yield f"gpu:0, ZeRO {z}"
        yield from device_bars(steps[z], CLUSTER, "gpu:0", ("compute", "communication:1"))
    yield "what one sees"
    yield "  All learn the same."
    yield "  0: an all-reduce for each gradient; all GPUs make the same update."
    yield f"  1: each makes an eighth of the update: {state} of state become {format_bytes(2 * total // len(GPUS))}."
    yield "     A reduce-scatter and an all-gather together move what an all-reduce moves, but parameters are gathered"
    yield "     after the updates, where nothing is left to compute beside them."
    yield "  2: as 1, and a gradient is freed when it is scattered: less memory in the same time."
    yield "  3: no GPU has all parameters. Each layer is gathered before it is read, forwards and again backwards,"
    yield "     while the one before it computes: half as many bytes more than before, about half beside computing."
    return steps[3]


def _sharded(graph: Graph, zero: int) -> Graph:
    return replicate(graph, GPUS, batch="ids", loss="loss", zero=zero)


def _losses(graph: Graph) -> list[str]:
    """The loss of each step, with values."""
    feeds = {"ids": first_ids(SMALL_ROWS, SMALL_WIDTH)}
    with BlockingSession(graph, CLUSTER) as session:
        session.run([], targets="initialise")
        return [f"{float(session.run('loss', feeds, targets='train')[0]):.5f}" for _ in range(STEPS)]


def _step(graph: Graph) -> Timeline:
    parts = cut(graph, CLUSTER, feeds=["ids"], fetches=["loss"], targets=["train"])
    return simulate(parts, CLUSTER, feeds={"ids": (ROWS,)})


def _held(item: tuple[int, Timeline]) -> tuple[str, ...]:
    """The bytes of the peak by what they are, which the names of tensors say."""
    zero, timeline = item
    peak = timeline.memory(GPU, "device")
    held = Counter[str]()
    for tensor in peak.tensors:
        held[_what(tensor.node)] += tensor.bytes
    kinds = ("parameters", "state", "gradients", "activations")
    return str(zero), *(format_bytes(held[kind]) for kind in kinds), format_bytes(peak.peak_bytes)


def _what(node: str) -> str:
    """The kind of a tensor of the peak by its name."""
    if node.endswith(("/m", "/v")):
        return "state"
    if node.endswith(("/weights", "/rows", "/forward", "/backward")) and "/" in node:
        return "parameters"
    is_gradient = node.endswith("MatMul_1") or node.startswith(("all_reduce/", "zero/gradients_"))
    return "gradients" if is_gradient else "activations"


def _costs(item: tuple[int, Timeline]) -> tuple[str, ...]:
    zero, timeline = item
    events = [event for event in timeline.events if event.kind == "collective" and event.device == GPU]
    counts = Counter(event.provenance.partition(" ")[0] for event in events)
    times = (timeline.makespan_ns, *timeline.communication(GPU))
    return str(zero), *map(format_ns, times), ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts))


if __name__ == "__main__":
    print("\n".join(story()))
