"""Gradients of activations, and of the ops that compute those gradients.

At a kink the slope is TensorFlow's, that of the ops ending in "Grad".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import masked, zeros_like

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_FROM_OUTPUT = {"Relu": "ReluGrad", "Relu6": "Relu6Grad", "Elu": "EluGrad", "Selu": "SeluGrad"}
_FROM_INPUT = {"Softplus": "SoftplusGrad", "Softsign": "SoftsignGrad"}


@gradient(*_FROM_OUTPUT)
def from_output(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes the gradient from g and y."""
    return (op.make(_FROM_OUTPUT[op.op], grad, op.outputs[0]),)


@gradient(*_FROM_INPUT)
def from_input(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes the gradient from g and x."""
    return (op.make(_FROM_INPUT[op.op], grad, op.inputs[0]),)


@gradient("LeakyRelu")
def leaky_relu(op: Forward, grad: Tensor) -> Gradients:
    """d x = g where x > 0, alpha g elsewhere."""
    return (op.make("LeakyReluGrad", grad, op.inputs[0], **op.own_attrs("alpha")),)


@gradient("ReluGrad", "Relu6Grad")
def relu_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g where the slope is 1: g gets the same of the gradient, the features get none."""
    return op.make(op.op, grad, op.inputs[1]), zeros_like(op, 1)


@gradient("LeakyReluGrad")
def leaky_relu_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g times the slope: g gets the same of the gradient, the features get none."""
    return op.make("LeakyReluGrad", grad, op.inputs[1], **op.own_attrs("alpha")), zeros_like(op, 1)


@gradient("EluGrad")
def elu_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g where y > 0, g (y + 1) elsewhere."""
    g, y = op.inputs
    return op.make("EluGrad", grad, y), masked(op, op.make("Less", y, 0.0), grad * g)


@gradient("SeluGrad")
def selu_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = scale g where y > 0, g (y + scale alpha) elsewhere."""
    g, y = op.inputs
    return op.make("SeluGrad", grad, y), masked(op, op.make("Less", y, 0.0), grad * g)


@gradient("SoftplusGrad")
def softplus_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g sigmoid(x)."""
    g, x = op.inputs
    sigmoid = op.make("Sigmoid", x)
    return grad * sigmoid, grad * g * sigmoid * (1 - sigmoid)


@gradient("SoftsignGrad")
def softsign_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g / (1 + |x|)^2."""
    g, x = op.inputs
    size = op.make("Abs", x) + 1
    slope = op.make("Sign", x) / (size * size * size) * -2
    return op.make("SoftsignGrad", grad, x), grad * g * slope
