"""Story: inference of a small convolutional network, its layers split over two GPUs.

A batch of images enters on the host. The first convolutions run on GPU:0 and the others, with the classifier, on GPU:1,
so that one tensor crosses the link between the GPUs. Run it with `python -m partita.scenarios.stories.cnn_two_gpus`;
its output is in the file beside it.
"""

from __future__ import annotations

import numpy as np

from ...actors import BlockingSession
from ...devices import cut, local_cluster
from ...devices.timing import simulate
from ..report import step_report, value_line
from ..workloads.cnn import SIDE, cnn
from ..workloads.parameters import uniform
from .catalog import Story

IMAGES = 32


def story() -> Story:
    """The lines of the story."""
    graph_def = cnn(["/device:GPU:0", "/device:GPU:1"])
    cluster = local_cluster("cpu:1,gpu:2", gpu="V100-SXM2")
    images = uniform("images", (IMAGES, SIDE, SIDE, 3))

    # Exact values: an actor per device runs its graph with numpy kernels.
    with BlockingSession(graph_def, cluster) as session:
        (probabilities,) = session.run("probabilities", {"images": images})
    yield f"{IMAGES} images through a CNN on two GPUs"
    yield value_line("probabilities", probabilities)
    yield f"most frequent class: {np.bincount(probabilities.argmax(1)).argmax()}"

    # Virtual time: the same graphs, on models of devices and links, without values.
    parts = cut(graph_def, cluster, feeds=["images"], fetches=["probabilities"])
    timeline = simulate(parts, cluster, feeds={"images": images.shape})
    yield from step_report(parts, timeline, cluster)
    return timeline


if __name__ == "__main__":
    print("\n".join(story()))
