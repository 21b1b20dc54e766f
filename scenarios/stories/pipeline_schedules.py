"""Story: four GPUs in a row, and the order in which they take micro-batches: GPipe, 1F1B, interleaved.

A GPU waits until the first micro-batch has come to it, and at the end for those behind it: the bubble. It is a part
(p - 1) / (v m + p - 1) of the step for p GPUs, v stages on each and m micro-batches. 1F1B has the bubble of GPipe and
keeps fewer activations; interleaved stages make it smaller for more transfers (Narayanan et al.: Megatron-LM, 2021).
Run it with `python -m partita.scenarios.stories.pipeline_schedules`.
"""

from __future__ import annotations

from typing import NamedTuple

from ...actors import BlockingSession
from ...devices import cut, local_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_bytes, format_ns
from ...graph import Graph, PipelineShape, Timetable, find_schedule, pipeline
from ..report import columns, device_bars
from ..workloads.deep_training import deep_training, first_ids
from .catalog import Story

LAYERS, WIDTH, ROWS, MICRO_BATCHES = 16, 4096, 65536, 8
SHOWN = 4  # micro-batches of the timetables
SMALL_LAYERS, SMALL_WIDTH, SMALL_ROWS, STEPS = 8, 16, 64, 4
GPUS = [f"/device:GPU:{k}" for k in range(4)]
CLUSTER = local_cluster("cpu:1,gpu:4", gpu="H100-SXM")


class ScheduleChoice(NamedTuple):
    """A schedule, the stages of each GPU and the number of micro-batches."""

    schedule: str
    interleave: int
    microbatches: int

    @property
    def timetable(self) -> Timetable:
        """When its calls start if stages are equal and transfers are free."""
        shape = PipelineShape(len(GPUS), self.interleave, self.microbatches)
        return Timetable(find_schedule(self.schedule).calls(shape), shape)

    def pipelined(self, graph: Graph) -> Graph:
        """The training step as a pipeline over the GPUs."""
        schedule, interleave, count = self
        return pipeline(
            graph, GPUS, batch="ids", loss="loss", microbatches=count, schedule=schedule, interleave=interleave
        )


CHOICES = [
    ScheduleChoice("gpipe", 1, MICRO_BATCHES),
    ScheduleChoice("1f1b", 1, MICRO_BATCHES),
    ScheduleChoice("interleaved", 2, MICRO_BATCHES),
]
MORE = ScheduleChoice("1f1b", 1, 4 * MICRO_BATCHES)


def story() -> Story:
    """The lines of the story."""
    yield f"a small perceptron learns {SMALL_ROWS} rows: its loss, step by step"
    small = deep_training(SMALL_LAYERS, SMALL_WIDTH)
    rows = [("one GPU", *_losses(small)), *((choice.schedule, *_losses(choice.pipelined(small))) for choice in CHOICES)]
    yield from columns([("", *(f"step {k + 1}" for k in range(STEPS))), *rows])
    yield f"timetables of {SHOWN} micro-batches, for equal stages and free transfers: F forwards, B backwards, which"
    yield "take two columns, a and b the two stages of a device"
    for choice in (choice._replace(microbatches=SHOWN) for choice in CHOICES):
        p, v, m = len(GPUS), choice.interleave, choice.microbatches
        yield f"{choice.schedule}: bubble ({p} - 1) / ({v} x {m} + {p} - 1) = {choice.timetable.bubble()}"
        yield from (f"  {line}" for line in choice.timetable.text().splitlines())
    yield f"simulated: {LAYERS} layers {WIDTH} wide, {ROWS} rows"
    large = deep_training(LAYERS, WIDTH)
    steps = {choice: _step(choice.pipelined(large)) for choice in (*CHOICES, MORE)}
    head = (
        "schedule",
        "micro-batches",
        "step time",
        "bubble",
        "gpu:3 waits",
        "gpu:0 keeps",
        "gpu:0 peak",
        "gpu:3 peak",
    )
    yield from columns([head, *(_row(choice, timeline) for choice, timeline in steps.items())])
    yield "1f1b on the clock"
    for k in range(len(GPUS)):
        yield from (f"  gpu:{k}{line}" for line in device_bars(steps[CHOICES[1]], CLUSTER, f"gpu:{k}", ("compute",)))
    yield "what one sees"
    size, layers = format_bytes(4 * WIDTH * (ROWS // MICRO_BATCHES)), LAYERS // len(GPUS)
    yield "  The loss does not depend on the schedule: gradients of micro-batches are averaged for one update."
    yield "  gpu:3 waits about as long as the bubble says. gpu:0 waits longer: its first layer hands no gradient back."
    yield f"  gpu:0 keeps the activations of its {layers} layers, {size} each, for every micro-batch that has begun:"
    yield f"  those of {MICRO_BATCHES} with GPipe, of {len(GPUS)} with 1F1B, which takes the same time. So 1F1B can"
    yield "  have more and smaller micro-batches, and then its bubble is smaller too, as long as kernels are large."
    yield "  Two stages on each GPU make the bubble smaller, for more transfers and more begun micro-batches."
    return steps[CHOICES[1]]


def _losses(graph: Graph) -> list[str]:
    """The loss of each step, with values."""
    feeds = {"ids": first_ids(SMALL_ROWS, SMALL_WIDTH)}
    with BlockingSession(graph, CLUSTER) as session:
        session.run([], targets="initialise")
        return [f"{float(session.run('loss', feeds, targets='train')[0]):.5f}" for _ in range(STEPS)]


def _step(graph: Graph) -> Timeline:
    parts = cut(graph, CLUSTER, feeds=["ids"], fetches=["loss"], targets=["train"], inline=True)
    return simulate(parts, CLUSTER, feeds={"ids": (ROWS,)})


def _row(choice: ScheduleChoice, timeline: Timeline) -> tuple[str, ...]:
    first, last = (CLUSTER.find(f"gpu:{k}").name for k in (0, len(GPUS) - 1))
    return (
        choice.schedule,
        str(choice.microbatches),
        format_ns(timeline.makespan_ns),
        f"{100 * float(choice.timetable.bubble()):.1f} %",
        f"{100 * (1 - timeline.busy_fraction(last)):.1f} %",
        str(choice.timetable.most_kept(0)),
        format_bytes(timeline.peak_memory_bytes(first)),
        format_bytes(timeline.peak_memory_bytes(last)),
    )


if __name__ == "__main__":
    print("\n".join(story()))
