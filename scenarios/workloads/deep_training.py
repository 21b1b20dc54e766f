"""A training step for one device of a perceptron whose layers are equal, for passes that make it parallel.

    ids --OneHot--> layer0/out --> ... --> loss --gradients--> one update for each layer

Placeholder: "ids", int32 [rows], the column of each row that is 1. Results: "loss", the mean square of what the last
layer gives, and targets "train" and "initialise". Every layer is a name scope with one product, so its times and bytes
follow from rows and width: with w features it has 4 w^2 bytes of parameters, and a product takes 2 rows w^2 operations,
one forwards and two backwards.
"""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np

from ...graph import Graph
from ...graph.builder.builder import GraphBuilder
from ...graph.gradients.backward import gradients
from .parameters import Variables

OptimizerName = Literal["descent", "adam"]

_RATE = 0.05


def deep_training(layers: int, width: int, optimizer: OptimizerName = "descent") -> Graph:
    """A step of gradient descent, or of Adam, which keeps two slots of the size of each parameter."""
    b = GraphBuilder()
    variables = Variables(b)
    x = b.op("OneHot", b.placeholder("ids", "int32", (None,)), width, 1.0, 0.0, name="rows")[0]
    for k in range(layers):
        weights = variables.uniform(f"layer{k}/weights", (width, width), sqrt(6 / width))
        x = b.op("Relu", b.op("MatMul", x, weights, name=f"layer{k}/product"), name=f"layer{k}/out")[0]
    b.op("Mean", b.op("Square", x, name="squares"), [0, 1], name="loss")
    slopes = gradients(b, ["loss"], [f"layer{k}/weights/read" for k in range(layers)])
    update = _adam if optimizer == "adam" else _descent
    updates = [update(b, variables, f"layer{k}/weights", str(slope), width) for k, slope in enumerate(slopes)]
    b.group(*updates, name="train")
    variables.initialiser()
    return b.graph()


def _descent(b: GraphBuilder, _: Variables, name: str, slope: str, __: int) -> str:
    return b.op("ResourceApplyGradientDescent", name, np.float32(_RATE), slope, name=f"{name}/update").name


def _adam(b: GraphBuilder, variables: Variables, name: str, slope: str, width: int) -> str:
    """Adam (Kingma and Ba, 2015) without the correction for the first steps: its powers of beta are constants."""
    slots = [f"{name}/{slot}" for slot in ("m", "v")]
    for slot in slots:
        variables.full(slot, (width, width), 0.0)
    numbers = [np.float32(x) for x in (0.0, 0.0, _RATE / 10, 0.9, 0.999, 1e-7)]
    return b.op("ResourceApplyAdam", name, *slots, *numbers, slope, name=f"{name}/update").name


def first_ids(rows: int, width: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """A batch: the ids 0, 1, 2, ... modulo `width`."""
    return (np.arange(rows) % width).astype(np.int32)
