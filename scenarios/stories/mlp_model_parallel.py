"""Story: a perceptron that is too wide for one device, in two stages on two GPUs.

Each GPU has the weights of its stage; only activations are sent. The same graph is also simulated with both stages on
one GPU. With one batch at a time two stages take longer, by the time of the transfer, but need less memory per GPU. Run
it with `python -m partita.scenarios.stories.mlp_model_parallel`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...actors import BlockingSession
from ...devices import Cluster, cut, local_cluster
from ...devices.timing import Timeline, simulate
from ...devices.units import format_bytes, format_ns
from ..report import columns, step_report, value_line
from ..workloads.mlp import mlp
from ..workloads.parameters import uniform
from .catalog import Story

ROWS, SIZES = 256, (256, 1024, 1024, 1024, 16)
ONE_GPU = ["/device:GPU:0"] * 4
TWO_STAGES = ["/device:GPU:0"] * 2 + ["/device:GPU:1"] * 2


def story() -> Story:
    """The lines of the story."""
    graph_def = mlp(SIZES, TWO_STAGES)
    cluster = _cluster()
    x = uniform("x", (ROWS, SIZES[0]))

    with BlockingSession(graph_def, cluster) as session:
        (y,) = session.run("y", {"x": x})
    yield "a two-stage perceptron, a stage per GPU"
    yield value_line("y", y)

    parts = cut(graph_def, cluster, feeds=["x"], fetches=["y"])
    timeline = simulate(parts, cluster, feeds={"x": x.shape})
    yield from step_report(parts, timeline, cluster)
    yield "against one GPU"
    yield from _comparison({"one GPU": _simulated(ONE_GPU), "two stages": timeline})
    return timeline


def _cluster() -> Cluster:
    return local_cluster("cpu:1,gpu:2")


def _simulated(devices: Sequence[str]) -> Timeline:
    cluster = _cluster()
    parts = cut(mlp(SIZES, devices), cluster, feeds=["x"], fetches=["y"])
    return simulate(parts, cluster, feeds={"x": (ROWS, SIZES[0])})


def _comparison(timelines: dict[str, Timeline]) -> Iterator[str]:
    rows = [["", "step time", "largest memory of a GPU"]]
    for name, timeline in timelines.items():
        gpus = [_cluster().find(device).name for device in set(TWO_STAGES)]
        peak = max(map(timeline.peak_memory_bytes, gpus))
        rows.append([name, format_ns(timeline.makespan_ns), format_bytes(peak)])
    return columns(rows)


if __name__ == "__main__":
    print("\n".join(story()))
