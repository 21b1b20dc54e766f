"""Story: what it buys to hold receives back until shortly before their tensors are needed.

Without scheduling every receive of a step is posted when the step begins, so a tensor is sent, and occupies a buffer,
long before its device gets to it. Start times say when it is needed: guessed from the graph, or read from the timeline
of a simulated step. Run it with `python -m partita.scenarios.stories.epochs`.
"""

from __future__ import annotations

from ...devices import cut, local_cluster
from ...devices.pipeline import RecvEpochs
from ...devices.timing import Timeline, simulate, start_times
from ...devices.units import format_bytes, format_ns
from ..report import columns
from ..workloads.resnet50 import resnet50
from .catalog import Story

GPUS = [f"/device:GPU:{k}" for k in range(4)]
SIDE, IMAGES, MICRO_BATCHES = 224, 64, 8
CLUSTER = local_cluster(f"cpu:1,gpu:{len(GPUS)}")


def story() -> Story:
    """The lines of the story."""
    plain = _step(False)
    guessed, own = _step(True), _step(start_times(plain))
    steps = {"as the step begins": plain, "by guessed times": guessed, "by its timeline": own}
    yield f"ResNet-50 over four GPUs, {IMAGES} images of {SIDE} x {SIDE} in {MICRO_BATCHES} micro-batches"
    yield "step time, and the most memory that each GPU needs"
    names = (f"gpu:{k}" for k in range(len(GPUS)))
    yield from columns([("receives are posted", "step time", *names), *map(_costs, steps.items())])
    yield "when micro-batches are sent to the first GPU"
    numbers = (str(k + 1) for k in range(MICRO_BATCHES))
    yield from columns([("receives are posted", *numbers), *map(_sent, steps.items())])
    yield "what one sees"
    before, after = (timeline.peak_memory_bytes(CLUSTER.find(GPUS[0]).name) for timeline in (plain, guessed))
    saved = f"{100 * (1 - after / before):.0f} %"
    yield f"  gpu:0 needs {saved} less memory: micro-batches wait on the host until it gets to them."
    yield f"  The step takes {_compared(guessed, plain)}: each tensor is still there before it is needed."
    yield f"  By the times of its own timeline it takes {_compared(own, plain)}: guessing is enough here."
    return guessed


def _step(recv_epochs: RecvEpochs) -> Timeline:
    graph_def = resnet50(GPUS, SIDE, IMAGES, MICRO_BATCHES)
    parts = cut(graph_def, CLUSTER, feeds=["images"], fetches=["logits"], recv_epochs=recv_epochs)
    return simulate(parts, CLUSTER, feeds={"images": (IMAGES, SIDE, SIDE, 3)})


def _costs(item: tuple[str, Timeline]) -> tuple[str, ...]:
    posted, timeline = item
    peaks = (format_bytes(timeline.peak_memory_bytes(CLUSTER.find(name).name)) for name in GPUS)
    return posted, format_ns(timeline.makespan_ns), *peaks


def _sent(item: tuple[str, Timeline]) -> tuple[str, ...]:
    posted, timeline = item
    copies = (event for event in timeline.events if event.kind == "copy" and event.node.endswith("_micro_batches"))
    return posted, *(format_ns(start) for start in sorted(copy.start_ns for copy in copies))


def _compared(timeline: Timeline, other: Timeline) -> str:
    longer = timeline.makespan_ns / other.makespan_ns - 1
    return f"{100 * abs(longer):.1f} % {'more' if longer > 0 else 'less'} time" if longer else "the same time"


if __name__ == "__main__":
    print("\n".join(story()))
