"""Story: ResNet-50 as a pipeline over one to eight GPUs: values for small images, times for real sizes.

Micro-batches follow each other through the stages, so that all GPUs work once the pipeline is full. Values are computed
for small images, because numpy on this machine computes them; times are simulated for 224 x 224, without values. Run it
with `python -m partita.scenarios.stories.resnet50_pipeline`.
"""

from __future__ import annotations

from ...actors import BlockingSession
from ...devices import Cluster, cut, local_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_bytes, format_ns
from ...graph import Graph
from ..report import columns, step_report, value_line
from ..workloads.parameters import uniform
from ..workloads.resnet50 import resnet50
from .catalog import Story

SMALL_SIDE, SMALL_IMAGES = 32, 4
SIDE, IMAGES, MICRO_BATCHES = 224, 64, 8
COUNTS = (1, 2, 4, 8)


def story() -> Story:
    """The lines of the story."""
    images = uniform("images", (SMALL_IMAGES, SMALL_SIDE, SMALL_SIDE, 3))
    with BlockingSession(resnet50(_gpus(4), SMALL_SIDE, SMALL_IMAGES, 2), _cluster(4)) as session:
        session.run([], targets="initialise")
        (logits,) = session.run("logits", {"images": images})
    yield f"ResNet-50 over four GPUs, {SMALL_IMAGES} images of {SMALL_SIDE} x {SMALL_SIDE}"
    yield value_line("logits", logits)

    yield f"{IMAGES} images of {SIDE} x {SIDE} in {MICRO_BATCHES} micro-batches, over so many GPUs"
    steps = {count: _step(count) for count in COUNTS}
    yield from columns([("GPUs", "step time", "images/s", "busiest GPU", "largest memory"), *map(_row, steps.items())])
    yield "the step on four GPUs"
    yield from step_report(*steps[4], _cluster(4))
    return steps[4][1]


def _gpus(count: int) -> list[str]:
    return [f"/device:GPU:{k}" for k in range(count)]


def _cluster(count: int) -> Cluster:
    return local_cluster(f"cpu:1,gpu:{count}")


def _step(count: int) -> tuple[dict[str, Graph], Timeline]:
    graph_def = resnet50(_gpus(count), SIDE, IMAGES, MICRO_BATCHES)
    parts = cut(graph_def, _cluster(count), feeds=["images"], fetches=["logits"])
    return parts, simulate(parts, _cluster(count), feeds={"images": (IMAGES, SIDE, SIDE, 3)})


def _row(item: tuple[int, tuple[dict[str, Graph], Timeline]]) -> tuple[str, ...]:
    count, (_, timeline) = item
    gpus = [_cluster(count).find(name).name for name in _gpus(count)]
    return (
        str(count),
        format_ns(timeline.makespan_ns),
        f"{IMAGES * 10**9 // timeline.makespan_ns}",
        f"{100 * max(map(timeline.busy_fraction, gpus)):.1f} %",
        format_bytes(max(map(timeline.peak_memory_bytes, gpus))),
    )


if __name__ == "__main__":
    print("\n".join(story()))
