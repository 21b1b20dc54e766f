"""Gradient of Einsum: for each operand the product of g with the other operands, summed over the labels it lacks.

A label that only one operand has was summed over: the gradient is stretched along it. "..." stands for axes that
broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate, element, joined, shape_of, span
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_DOTS = "..."


@gradient("Einsum", "XlaEinsum")
def einsum(op: Forward, grad: Tensor) -> Gradients:
    operand_labels, result = op.attrs["equation"].decode().replace(" ", "").split("->")
    operands = operand_labels.split(",")
    return [_to_operand(op, grad, operands, result, port) if op.wants(port) else None for port in range(len(operands))]


def _to_operand(op: Forward, grad: Tensor, operands: list[str], result: str, port: int) -> Tensor:
    """The gradient of one operand."""
    others = [number for number in range(len(operands)) if number != port]
    known = set(result).union(*(operands[number] for number in others))
    own = operands[port]
    labels = "".join(dict.fromkeys(own.replace(_DOTS, "")))
    kept_labels = "".join(label for label in labels if label in known)
    dots = _DOTS if _DOTS in own + result + "".join(operands) else ""
    gradient = _product(op, grad, result, [(operands[n], op.inputs[n]) for n in others], dots + kept_labels)
    if kept_labels != labels:
        gradient = _stretched(op, gradient, own, kept_labels, labels, port)
    if dots:
        gradient = _summed_batch(op, gradient, own, labels, port)
    order = _DOTS + labels if _DOTS in own else labels
    return gradient if order == own else op.make("Einsum", [gradient], equation=f"{order}->{own}")


def _product(op: Forward, grad: Tensor, result: str, others: list[tuple[str, Tensor]], target: str) -> Tensor:
    terms = [(result, grad), *((labels, conjugate(op, tensor)) for labels, tensor in others)]
    equation = ",".join(labels for labels, _ in terms)
    return op.make("Einsum", [tensor for _, tensor in terms], equation=f"{equation}->{target}")


def _sizes_of_labels(op: Forward, own: str, labels: str, port: int) -> list[Tensor]:
    """The size of each label of an operand, as vectors of one element."""
    shape = shape_of(op, port)
    before, _, after = own.partition(_DOTS)
    sizes = []
    for label in labels:
        place = before.find(label)
        if place < 0:
            place = after.find(label) - len(after)
        sizes.append(op.make("Reshape", element(op, shape, place), [1]))
    return sizes


def _stretched(op: Forward, tensor: Tensor, own: str, present: str, labels: str, port: int) -> Tensor:
    """`tensor` broadcast along the labels in `labels` that are not in `present`; the labels' axes are the last ones."""
    shape = op.make("Shape", tensor)
    outer = [span(op, shape, 0, -len(present) if present else None)]
    one = op.g.constant([1], DataType.INT32)
    sizes = _sizes_of_labels(op, own, labels, port)
    unstretched = joined(op, [*outer, *(s if a in present else one for a, s in zip(labels, sizes, strict=True))])
    return op.make("BroadcastTo", op.make("Reshape", tensor, unstretched), joined(op, [*outer, *sizes]))


def _summed_batch(op: Forward, tensor: Tensor, own: str, labels: str, port: int) -> Tensor:
    """The sum over the axes that "..." stands for in the result but not in the operand."""
    full = op.make("Shape", tensor)
    wide = span(op, full, 0, -len(labels) if labels else None)
    before, ellipsis, after = own.partition(_DOTS)
    shape = shape_of(op, port)
    batch = span(op, shape, len(before), -len(after) if after else None) if ellipsis else span(op, shape, 0, 0)
    axes = op.make("BroadcastGradientArgs", batch, wide)
    summed = op.make("Sum", tensor, axes)
    return op.make("Reshape", summed, joined(op, [batch, *_sizes_of_labels(op, own, labels, port)]))
