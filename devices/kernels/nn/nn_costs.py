"""Costs of biases, of softmax and of the losses that contain it; docstrings list the steps that a count adds up."""

from __future__ import annotations

from ..op_cost import CostContext, elements_read, flops

flops("BiasAddGrad")(elements_read)  # a sum over all axes but that of the channels


@flops("Softmax", "LogSoftmax")
def softmax(c: CostContext) -> int:
    """Per element: maximum, subtraction, exponential, sum, division (or subtraction of the logarithm)."""
    return 5 * c.elements_in()


@flops("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(c: CostContext) -> int:
    """Softmax (5), product with the labels, its sum, and the gradient's subtraction, per logit."""
    return 8 * c.elements_in()
