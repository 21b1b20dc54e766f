"""One step of gradient descent of an image network: forward, gradients, weight decay, update.

    images, labels (on the device) --network--> logits --> loss --gradients--> one update for each variable

As in the tf_cnn_benchmarks of 2017: images are there already (a variable on the device, unless they are fed). The
variables of the network are on the device or on the host ("parameter server on the CPU"): a step then copies all of
them to the device, and all gradients back. Weight decay adds a share of every variable to its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...errors import InternalError
from ...graph import DataType, Graph, graph_def_to_graph
from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Tensor
from ...graph.gradients.backward import gradients
from ...graph.node import Node
from . import alexnet, inception_v3, resnet_training, vgg16
from .image_layers import ImageLayers
from .parameters import Variables

ImageNetwork = Callable[[ImageLayers, Tensor], Tensor]
NETWORKS: dict[str, tuple[ImageNetwork, int]] = {
    "ResNet-50": (resnet_training.trained_resnet50, resnet_training.SIDE),
    "ResNet-152": (resnet_training.trained_resnet152, resnet_training.SIDE),
    "InceptionV3": (inception_v3.inception_v3, inception_v3.SIDE),
    "VGG16": (vgg16.vgg16, vgg16.SIDE),
    "AlexNet": (alexnet.alexnet, alexnet.SIDE),
}
"""Name -> the network, and the side of its images."""
_IMAGES = "images"
_DECAY, _RATE = 4e-5, 0.01


class ImageTraining(NamedTuple):
    """The graph of a step, which feeds it has, what it fetches, and the nodes that update variables."""

    graph: Graph
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]


class _Placed(Variables):
    """Variables on a device of their own."""

    def __init__(self, b: GraphBuilder, device: str) -> None:
        super().__init__(b)
        self._device = device

    def uniform(self, name: str, shape: Sequence[int], scale: float) -> Tensor:
        """As in `Parameters`."""
        with self._b.device(self._device):
            return super().uniform(name, shape, scale)

    def full(self, name: str, shape: Sequence[int], value: float) -> Tensor:
        """As in `Parameters`."""
        with self._b.device(self._device):
            return super().full(name, shape, value)


def image_training(name: str, images: int | None, device: str, variables_on: str | None = None) -> ImageTraining:
    """A step of network `name` of `NETWORKS` for a batch of `images`; variables are on `device` unless given.

    With `images` None they are a placeholder "images", [any number, side, side, 3], which a pass can split.
    """
    network, side = NETWORKS[name]
    variables_on = variables_on or device
    b = GraphBuilder()
    with b.device(device):
        shape = (side, side, 3)
        batch = b.placeholder(_IMAGES, "float32", (None, *shape)) if images is None else _kept(b, (images, *shape))
        labels = b.placeholder("labels", "int32", (images,))
        logits = network(ImageLayers(b, _Placed(b, variables_on)), batch)
        losses = b.op("SparseSoftmaxCrossEntropyWithLogits", logits, labels)[0]
        b.op("Mean", losses, [0], name="cross_entropy")
        b.constant(np.float32(_DECAY), name="decay")
    with b.device(variables_on):
        b.constant(np.float32(_RATE), name="rate")
    graph = graph_def_to_graph(b.graph_def())
    reads = [node.name for node in graph.op_nodes() if node.op == "ReadVariableOp" and node.name != f"{_IMAGES}/read"]
    slopes = gradients(graph, ["cross_entropy"], reads)
    return _updated(graph, reads, slopes, device, variables_on)


def _kept(b: GraphBuilder, shape: Sequence[int]) -> Tensor:
    """Images that are on the device already."""
    kept = b.op("VarHandleOp", name=_IMAGES, dtype=DataType.FLOAT, shape=shape, attrs={"shared_name": _IMAGES})
    return b.op("ReadVariableOp", kept, name=f"{_IMAGES}/read", dtype=DataType.FLOAT)[0]


def _updated(
    graph: Graph, reads: Sequence[str], slopes: Sequence[str | None], device: str, variables_on: str
) -> ImageTraining:
    """Adds decay (gradient + decay * variable, on the device) and the updates, where the variables are."""
    updates = []
    for read, slope in zip(reads, slopes, strict=True):
        if slope is None:
            raise InternalError(f"the loss does not depend on {read!r}")
        decayed = _added(graph, f"{read}/decay", "Mul", [read, "decay"], device)
        total = _added(graph, f"{read}/slope", "AddV2", [slope, decayed], device)
        (handle,) = (edge.src.name for edge in _node(graph, read).in_edges())
        update = _added(graph, f"{read}/update", "ResourceApplyGradientDescent", [handle, "rate", total], variables_on)
        updates.append(update)
    feeds = tuple(node.name for node in graph.op_nodes() if node.op == "Placeholder")
    return ImageTraining(graph, feeds, ("cross_entropy",), tuple(updates))


def _added(graph: Graph, name: str, op: str, inputs: Sequence[str], device: str) -> str:
    """A node of float32 whose inputs are "node" or "node:port"; its name."""
    node = graph.add_node(name, op, {"T": DataType.FLOAT}, device=device)
    for port, text in enumerate(inputs):
        producer, _, output = text.partition(":")
        graph.add_edge(_node(graph, producer), int(output or 0), node, port)
    return name


def _node(graph: Graph, name: str) -> Node:
    node = graph.find_node(name)
    if node is None:
        raise InternalError(f"no node {name!r}")
    return node
