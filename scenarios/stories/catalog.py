"""The shipped stories by name.

A story is a module of this folder with a function `story`, and its expected output beside it. The function is a
generator: it yields lines, and returns the step that they are about for whoever wants to look at it. Importing this
module imports none of them.
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ...devices.timing import Timeline

Story: TypeAlias = "Generator[str, None, Timeline]"

STORIES = {
    "cnn_two_gpus": "inference of a small CNN, its layers split over two GPUs",
    "mlp_model_parallel": "a perceptron in two stages on two GPUs, and what that costs and wins",
    "all_to_one": "eight GPUs add up their arrays on one of them, at once or in a tree",
    "data_parallel_training": "replicas on GPUs, parameters on the host, both kinds of variables",
    "overlap": "gradients of eight GPUs are reduced at the end, or while the backward pass goes on",
    "straggler": "one of eight GPUs is slower, and all wait for it in the all-reduce",
    "zero_stages": "what each GPU keeps with ZeRO 0 to 3, and what that costs",
    "pipeline_schedules": "GPipe, 1F1B and interleaved stages on four GPUs: timetables, bubbles, memory",
    "resnet50_pipeline": "micro-batches through ResNet-50 on one to eight GPUs",
    "epochs": "the same pipeline with receives held back: less memory in the same time",
    "orders": "which ready kernel comes first, on four steps: as they come, by the critical path, by hand",
    "transformer_encoder": "heads split over one to eight GPUs, joined by fast and by slow links",
}
"""one line about each shipped story, by name"""


def tell(name: str) -> Story:
    """The lines of a story; KeyError when there is none of that name."""
    if name not in STORIES:
        raise KeyError(name)
    told: Story = import_module(f".{name}", __package__).story()
    return told


def step_of(name: str) -> Timeline:
    """The step that a story is about, once all of it has been told; KeyError as `tell`."""
    told = tell(name)
    while True:
        try:
            next(told)
        except StopIteration as end:
            step: Timeline = end.value
            return step
