"""The memory of training ResNet-50 on one GPU, a graph whose normalisations use the statistics of the batch."""

from __future__ import annotations

import numpy as np

from partita.devices import cut, local_cluster
from partita.devices.timing import simulate
from partita.graph import DataType, Graph, graph_def_to_graph
from partita.graph.builder.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.gradients.backward import gradients
from partita.scenarios.workloads.layers import Layers
from partita.scenarios.workloads.parameters import Variables
from partita.scenarios.workloads.resnet50 import _network

GPU = "/device:GPU:0"
IMAGES = 64


class TrainedLayers(Layers):
    """Layers whose normalisation is that of training."""

    def batch_norm(self, x: Tensor, channels: int, name: str, gain: float = 1.0) -> Tensor:
        """Normalises with mean and variance of the batch."""
        scale = self.parameters.full(f"{name}/gain", (channels,), gain)
        offset = self.parameters.full(f"{name}/offset", (channels,), 0.0)
        empty = [self.b.constant(np.zeros(0, np.float32)) for _ in range(2)]
        return self.b.op("FusedBatchNormV3", x, scale, offset, *empty, is_training=True, name=f"{name}/norm")[0]


def training() -> tuple[Graph, list[str]]:
    """The graph of one step of gradient descent, and the nodes that update the variables."""
    b = GraphBuilder()
    with b.device(GPU):
        images = b.placeholder("images", "float32", (IMAGES, 224, 224, 3))
        labels = b.placeholder("labels", "int32", (IMAGES,))
        logits = _network(b, TrainedLayers(b, Variables(b)), images, [GPU], {})
        b.op("Mean", b.op("SparseSoftmaxCrossEntropyWithLogits", logits, labels)[0], [0], name="loss")
        b.constant(np.float32(0.1), name="rate")
    graph = graph_def_to_graph(b.graph_def())
    reads = [node for node in graph.op_nodes() if node.op == "ReadVariableOp"]
    updates = []
    for read, gradient in zip(reads, gradients(graph, ["loss"], [node.name for node in reads]), strict=True):
        update = graph.add_node(
            f"{read.name}/update", "ResourceApplyGradientDescent", {"T": DataType.FLOAT}, device=GPU
        )
        assert gradient is not None
        producer, _, output = gradient.partition(":")
        (handle,) = (edge.src for edge in read.in_edges())
        for port, (source, index) in enumerate(((handle.name, 0), ("rate", 0), (producer, int(output)))):
            node = graph.find_node(source)
            assert node is not None
            graph.add_edge(node, index, update, port)
        updates.append(update.name)
    return graph, updates


def test_the_peak_of_training_resnet50() -> None:
    """5.15 GiB for 64 images: the inputs of all convolutions and normalisations, which the gradients read again."""
    graph, updates = training()
    hardware = local_cluster("gpu")
    parts = cut(graph, hardware, feeds=["images", "labels"], fetches=["loss"], targets=updates)
    peak = simulate(parts, hardware).memory(hardware.names[1])
    assert round(peak.peak_bytes / 2**30, 2) == 5.15
    assert peak.tensors[0][:3] == ("stem/conv", 0, IMAGES * 112 * 112 * 64 * 4)
    assert sum(tensor.bytes for tensor in peak.tensors) == peak.peak_bytes
