"""Story: what the order of ready kernels buys, on four steps.

A stream has several kernels that could run next. The first to be ready is what a runtime takes; "critical-path" takes
the one from which the longest way leads to the end of the step, as if every device and link were free when it is
needed. By hand one may know better. Run it with `python -m partita.scenarios.stories.orders`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...devices import Cluster, cut, local_cluster
from ...devices.timing import Order, Timeline, simulate
from ...devices.units import format_ns
from ...graph import Graph, GraphBuilder, GraphDef, pipeline, replicate
from ..report import columns
from ..workloads.deep_training import deep_training
from ..workloads.image_layers import ImageLayers
from ..workloads.inception_v3 import SIDE, inception_v3
from ..workloads.parameters import Variables
from ..workloads.transformer import TransformerSizes, transformer_encoder
from .catalog import Story

GPUS = [f"/device:GPU:{k}" for k in range(8)]
IMAGES = 64
ENCODER = TransformerSizes(batch=8, length=512, width=1024, heads=16, hidden=4096, layers=4)
BLOCK = "a1"  # of Inception, whose branches are shown


class OrderedStep(NamedTuple):
    """A step, and the priority of each node by hand."""

    name: str
    parts: Mapping[str, Graph]
    cluster: Cluster
    feeds: Mapping[str, tuple[int, ...]]
    priority: Callable[[str], int]

    def timelines(self) -> dict[str, Timeline]:
        """The step in each order."""
        names = [node.name for graph in self.parts.values() for node in graph.op_nodes()]
        orders: dict[str, Order] = {
            "ready": "ready",
            "critical-path": "critical-path",
            "by hand": {name: self.priority(name) for name in names},
        }
        return {
            name: simulate(self.parts, self.cluster, feeds=self.feeds, order=order) for name, order in orders.items()
        }


def story() -> Story:
    """The lines of the story."""
    yield "step times by the order in which ready kernels are taken"
    steps = (data_parallel(), pipelined(), branches(), tensor_parallel())
    timelines = {step.name: step.timelines() for step in steps}
    rows = [_row(name, by_order) for name, by_order in timelines.items()]
    yield from columns([("", "ready", "critical-path", "", "by hand", "", "no schedule below"), *rows])
    yield "what one sees"
    yield "  Data parallel: the longest way leads over the gradients of activations, from the last layer to the first."
    yield "  The critical path computes all of these before those of weights, which the all-reduces wait for. Nothing"
    yield "  counts that the all-reduces follow each other on one stream. By hand gradients of weights come first."
    for order, timeline in timelines["data parallel"].items():
        yield f"    {order}: the first all-reduce begins at {format_ns(_first_collective(timeline))}"
    yield "  Pipeline: the same order pays here. The GPU before waits for the gradients of activations, and those of"
    yield "  weights are only added up. By hand they come last of all, and fill what was the bubble (Qi et al.: Zero"
    yield "  Bubble Pipeline Parallelism, 2023)."
    yield f"  Branches: gpu:1 has two of each block. Block {BLOCK}:"
    for order, timeline in timelines["branches of Inception"].items():
        yield f"    {order}: {_ends_of_branches(timeline)}"
    yield "  The critical path ends both at about the same time, and then both results have to cross the link. By hand"
    yield "  the longer branch is first as a whole, and its result is on the way while the other one is computed."
    yield "  Tensor parallel: every GPU has a chain, so there is nothing to choose."
    return timelines["pipeline"]["by hand"]


def _row(name: str, by_order: Mapping[str, Timeline]) -> Sequence[str]:
    usual, *others = (timeline.makespan_ns for timeline in by_order.values())
    changes = [cell for time in others for cell in (format_ns(time), f"{100 * (time / usual - 1):+.1f} %")]
    return name, format_ns(usual), *changes, format_ns(by_order["ready"].dependency_bound_ns)


def data_parallel() -> OrderedStep:
    """Eight GPUs reduce the gradients of a perceptron in buckets."""
    cluster = local_cluster("cpu:1,gpu:8", gpu="H100-SXM")
    graph = replicate(deep_training(16, 2048), GPUS, batch="ids", loss="loss", bucket_bytes=25 << 20)
    parts = cut(graph, cluster, feeds=["ids"], fetches=["loss"], targets=["train"])
    return OrderedStep(
        "data parallel", parts, cluster, {"ids": (8192,)}, lambda name: int(_is_gradient_of_weights(name))
    )


def pipelined() -> OrderedStep:
    """Four GPUs in a row, 1F1B over eight micro-batches."""
    cluster = local_cluster("cpu:1,gpu:4", gpu="H100-SXM")
    graph = pipeline(deep_training(16, 4096), GPUS[:4], batch="ids", loss="loss", microbatches=8, schedule="1f1b")
    parts = cut(graph, cluster, feeds=["ids"], fetches=["loss"], targets=["train"], inline=True)
    return OrderedStep("pipeline", parts, cluster, {"ids": (65536,)}, lambda name: -int(_is_gradient_of_weights(name)))


def branches() -> OrderedStep:
    """Inference of Inception-v3: the second and third branch of each block are on another GPU."""
    cluster = local_cluster("cpu:1,gpu:2", gpu="H100-SXM")
    parts = cut(_inception(), cluster, feeds=["images"], targets=["logits"])
    feeds = {"images": (IMAGES, SIDE, SIDE, 3)}
    return OrderedStep("branches of Inception", parts, cluster, feeds, lambda name: int("/branch3" in name))


def tensor_parallel() -> OrderedStep:
    """An encoder whose heads and hidden units are split over four GPUs; by hand nothing is better."""
    cluster = local_cluster("cpu:1,gpu:4", gpu="H100-SXM")
    parts = cut(transformer_encoder(GPUS[:4], ENCODER), cluster, feeds=["tokens"], targets=["encoded"])
    feeds = {"tokens": (ENCODER.batch * ENCODER.length, ENCODER.width)}
    return OrderedStep("tensor parallel", parts, cluster, feeds, lambda _: 0)


def _inception() -> GraphDef:
    b = GraphBuilder()
    inception_v3(ImageLayers(b, Variables(b)), b.placeholder("images", "float32", (None, SIDE, SIDE, 3)))
    graph_def = b.graph_def()
    for node in graph_def.node:
        node.device = GPUS["/branch2" in node.name or "/branch3" in node.name]
    return graph_def


def _is_gradient_of_weights(name: str) -> bool:
    return name.endswith("product_grad/MatMul_1")


def _first_collective(timeline: Timeline) -> int:
    return min(event.start_ns for event in timeline.events if event.kind == "collective")


def _ends_of_branches(timeline: Timeline) -> str:
    """When the branches of a block on one GPU end, and when all are joined."""
    ends = [
        max(event.end_ns for event in timeline.events if event.kind == "compute" and f"{BLOCK}/{name}" in event.node)
        for name in ("branch2", "branch3", "joined")
    ]
    return "branch 2 ends at {}, branch 3 at {}, joined at {}".format(*map(format_ns, ends))


if __name__ == "__main__":
    print("\n".join(story()))
