"""Dense layers between attentions, hidden units split over the ranks of tp: [own rows, hidden] -> the same."""

from __future__ import annotations

from math import pi, sqrt
from typing import Literal

from ....graph.builder.handles import Tensor
from .network import RankNetwork
from .products import between, column_of, row_of

Gelu = Literal["exact", "tanh"]


def gelu_layers(network: RankNetwork, x: Tensor, hidden: int, intermediate: int, kind: Gelu) -> Tensor:
    """gelu(x @ up + bias) @ down + bias."""
    up, down = column_of(network, "up", (hidden, intermediate)), row_of(network, "down", (intermediate, hidden))
    return between(network, x, lambda rows: down(gelu(network, up(rows), kind)))


def swiglu_layers(network: RankNetwork, x: Tensor, hidden: int, intermediate: int) -> Tensor:
    """(silu(x @ gate) * (x @ up)) @ down, without biases (Shazeer 2020: GLU variants improve transformer)."""
    gate, up = (column_of(network, name, (hidden, intermediate), bias=False) for name in ("gate", "up"))
    down = row_of(network, "down", (intermediate, hidden), bias=False)
    return between(network, x, lambda rows: down(gated_silu(network, gate(rows), up(rows))))


def gated_silu(network: RankNetwork, gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, where silu(x) = x * sigmoid(x)."""
    b = network.b
    if network.sizes.fused:
        return b.op("Partita>GatedSilu", gate, up, name="gated")[0]
    return b.op("Mul", b.op("Mul", gate, b.op("Sigmoid", gate), name="silu"), up, name="gated")[0]


def gelu(network: RankNetwork, x: Tensor, kind: Gelu) -> Tensor:
    """x times the normal distribution function of x, or its approximation by tanh (Hendrycks and Gimpel 2016)."""
    b = network.b
    if network.sizes.fused:
        return b.op("Partita>Gelu", x, approximate=kind == "tanh", name="gelu")[0]
    if kind == "exact":
        share = b.op("Erf", x * (1 / sqrt(2)), name="gelu/erf") + 1.0
    else:
        inner = (x + b.op("Square", x) * x * 0.044715) * sqrt(2 / pi)
        share = b.op("Tanh", inner, name="gelu/tanh") + 1.0
    return b.op("Mul", x * 0.5, share, name="gelu")[0]
