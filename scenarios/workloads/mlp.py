"""A multi-layer perceptron with a device per layer.

Placeholder: "x", float [rows,sizes[0]]. Result: "y", float [rows,sizes[-1]].
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import GraphDef
from ...graph.builder.builder import GraphBuilder
from .layers import Layers
from .parameters import Constants


def mlp(sizes: Sequence[int], devices: Sequence[str]) -> GraphDef:
    """Layer k maps sizes[k] to sizes[k + 1] features on devices[k]; all but the last end in a Relu."""
    b = GraphBuilder()
    layers = Layers(b, Constants(b))
    x = b.placeholder("x", "float32", (None, sizes[0]), device="/device:CPU:0")
    last = len(devices) - 1
    for k, device in enumerate(devices):
        with b.device(device):
            x = layers.dense(x, sizes[k], sizes[k + 1], f"layer{k + 1}", "Relu" if k < last else "")
    b.identity(x, name="y", device=devices[-1])
    return b.graph_def()
