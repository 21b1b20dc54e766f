"""Einsum: a contraction of one or two tensors by an equation of labels, computed as one matrix product."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, Dims
from ....graph.ops.linalg.einsum_shapes import Equation, parse_equation
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .products import batch_product


@kernel("Einsum", "XlaEinsum")
def einsum(node: Construction) -> Kernel:
    """The contraction that the equation describes, over one or two inputs."""
    return in_float32(contraction(parse_equation(node.attrs["equation"].decode())), node.output_types[0])


def contraction(equation: Equation) -> Kernel:
    """A function of one or two arrays.

    Shared labels become batches of one matrix product, so that BLAS does the work.
    """

    @lru_cache(maxsize=16)
    def labels_for(ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
        return _spelled_out(equation, ranks)

    @lru_cache(maxsize=16)
    def plain_product(*shapes: Dims) -> _Steps | None:
        """The steps of the whole contraction where it is one product, with nothing to sum or to pick before it."""
        (a, b), out = labels_for(tuple(map(len, shapes)))
        _label_sizes((a, b), shapes)
        repeats = any(len(set(own)) < len(own) for own in (a, b, out))
        return None if repeats or (set(a) ^ set(b)) - set(out) else _steps(shapes[0], a, shapes[1], b, out)

    def contract(*inputs: Array) -> Array:
        if len(inputs) != len(equation.inputs):
            raise InvalidArgumentError(f"Expected {len(equation.inputs)} inputs but got: {len(inputs)}")
        shapes = tuple([value.shape for value in inputs])
        steps = plain_product(*shapes) if len(inputs) == 2 else None
        if steps is not None:
            return steps.run(*inputs)
        labels, out = labels_for(tuple(map(len, shapes)))
        sizes = _label_sizes(labels, shapes)
        terms = [
            _reduced(value, own, labels, out, i) for i, (value, own) in enumerate(zip(inputs, labels, strict=True))
        ]
        distinct = "".join(dict.fromkeys(out))
        if len(terms) == 1:
            value = terms[0][0].transpose([terms[0][1].index(label) for label in distinct])
        else:
            (a, own_a), (b, own_b) = terms
            value = _steps(a.shape, own_a, b.shape, own_b, distinct).run(a, b)
        return _diagonal_output(value, distinct, out, sizes)

    return contract


_ELLIPSIS_LABELS = "".join(map(chr, range(0x100, 0x120)))


def _spelled_out(equation: Equation, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The labels of each input and of the output, one per axis: the axes of an ellipsis get labels of their own."""
    widths = []
    for i, (term, rank) in enumerate(zip(equation.inputs, ranks, strict=True)):
        named = len(term.replace("...", ""))
        if "..." not in term and rank != named:
            raise InvalidArgumentError(f"Expected input {i} to have rank {named} but got: {rank}")
        if rank < named:
            raise InvalidArgumentError(f"Expected input {i} to have rank at least {named} but got: {rank}")
        widths.append(rank - named if "..." in term else 0)
    widest = max(widths, default=0)
    if widest and "..." not in equation.output:
        raise InvalidArgumentError(
            f"Output contains {widest} broadcasting dimension(s) but no ellipsis (...) was found "
            "in the output subscripts."
        )

    def spell(term: str, width: int) -> str:
        return term.replace("...", _ELLIPSIS_LABELS[widest - width : widest])

    terms = tuple(spell(term, width) for term, width in zip(equation.inputs, widths, strict=True))
    return terms, spell(equation.output, widest)


def _label_sizes(labels: tuple[str, ...], shapes: tuple[Dims, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for own, shape in zip(labels, shapes, strict=True):
        for axis, (label, size) in enumerate(zip(own, shape, strict=True)):
            known = sizes.setdefault(label, size)
            if known == size:
                continue
            if label in _ELLIPSIS_LABELS and 1 in (known, size):  # only the axes of an ellipsis broadcast
                sizes[label] = max(known, size) if 0 not in (known, size) else 0
                continue
            raise InvalidArgumentError(
                f"Expected dimension {known} at axis {axis} of the input shaped {shape_text(shape)} "
                f"but got dimension {size}"
            )
    return sizes


def _reduced(value: Array, own: str, labels: tuple[str, ...], out: str, index: int) -> tuple[Array, str]:
    """Takes diagonals of repeated labels, then sums over the labels that neither the output nor the other input has."""
    for label in dict.fromkeys(own):
        while own.count(label) > 1:
            first = own.index(label)
            second = own.index(label, first + 1)
            value = np.diagonal(value, axis1=first, axis2=second)  # the diagonal becomes the last axis
            own = own[:first] + own[first + 1 : second] + own[second + 1 :] + label
    elsewhere = set(out).union(*(other for i, other in enumerate(labels) if i != index))
    alone = tuple(axis for axis, label in enumerate(own) if label not in elsewhere)
    if alone:
        value = np.sum(value, axis=alone, dtype=value.dtype)
        own = "".join(label for label in own if label in elsewhere)
    return np.asarray(value), own


class _Steps(NamedTuple):
    """One stack of matrix products: how to arrange and to shape both factors, then the product."""

    left: tuple[Dims, Dims]
    right: tuple[Dims, Dims]
    product: tuple[Dims, Dims]

    def run(self, a: Array, b: Array) -> Array:
        """The product, its axes in the order of the output."""
        (axes_a, shape_a), (axes_b, shape_b), (axes, sizes) = self
        result = batch_product(a.transpose(axes_a).reshape(shape_a), b.transpose(axes_b).reshape(shape_b))
        return result.reshape(result.shape[:-2] + sizes).transpose(axes)


def _steps(a_shape: Dims, a: str, b_shape: Dims, b: str, out: str) -> _Steps:
    """The product of two terms of these shapes and labels, as (batch, free labels of a, free labels of b)."""
    shared = [label for label in a if label in b]
    batch = [label for label in shared if label in out]
    inner = [label for label in shared if label not in out]
    free_a = [label for label in a if label not in shared]
    free_b = [label for label in b if label not in shared]
    size_a, size_b = dict(zip(a, a_shape, strict=True)), dict(zip(b, b_shape, strict=True))
    rows, columns = [size_a[label] for label in free_a], [size_b[label] for label in free_b]
    k = prod(size_b[label] for label in inner)
    left = *(size_a[label] for label in batch), prod(rows), k
    right = *(size_b[label] for label in batch), k, prod(columns)
    order = batch + free_a + free_b
    return _Steps(
        (tuple(a.index(label) for label in batch + free_a + inner), left),
        (tuple(b.index(label) for label in batch + inner + free_b), right),
        (tuple(order.index(label) for label in out), (*rows, *columns)),
    )


def _diagonal_output(value: Array, distinct: str, out: str, sizes: dict[str, int]) -> Array:
    """`value` of labels `distinct`, rearranged to `out`: a repeated label in `out` becomes a diagonal in zeros."""
    if distinct == out:
        return value
    result = np.zeros([sizes[label] for label in out], value.dtype)
    grids: Any = np.ix_(*(np.arange(sizes[label]) for label in distinct))
    result[tuple(grids[distinct.index(label)] for label in out)] = value
    return result
