"""Costs of biases, softmax and the losses that contain it, and of dilations; docstrings list the steps of a count."""

from __future__ import annotations

from math import prod

from ..kernel_run import KernelRun, rows_run, runs_as
from ..op_cost import CostContext, elements_read, flops

flops("BiasAddGrad")(elements_read)  # a sum over all axes but that of the channels


@flops("Softmax", "LogSoftmax")
def softmax(c: CostContext) -> int:
    """Per element: maximum, subtraction, exponential, sum, division (or subtraction of the logarithm)."""
    return 5 * c.elements_in()


@runs_as("Softmax", "LogSoftmax")
def softmax_run(c: CostContext) -> KernelRun:
    """Along the last axis."""
    return rows_run(c, "softmax")


@flops("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(c: CostContext) -> int:
    """Softmax (5), product with the labels, its sum, and the gradient's subtraction, per logit."""
    return 8 * c.elements_in()


@flops("CTCGreedyDecoder")
def greedy_decoder(c: CostContext) -> int:
    """The greatest logit of each step is looked for."""
    return c.elements_in()


@flops("CTCLoss")
def ctc_loss(c: CostContext) -> int:
    """Forward and backward sums of three paths, and the softmax, per step and label (Graves et al., ICML 2006)."""
    steps = c.inputs[0][0] if c.inputs[0] else 1
    return 5 * c.elements_in() + 12 * steps * c.elements_in(2)


@flops("Dilation2D")
def dilation(c: CostContext) -> int:
    """An addition and a comparison per point of the window."""
    return 2 * prod(c.inputs[1][:2]) * c.elements_out()


@flops("Dilation2DBackpropFilter", "Dilation2DBackpropInput")
def dilation_gradient(c: CostContext) -> int:
    """Every window is searched again, and its maximum gets one addition. inputs: image, filter, gradient."""
    return (2 * prod(c.inputs[1][:2]) + 1) * c.elements_in(2)
