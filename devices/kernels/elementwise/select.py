"""Kernels that choose or check elements: Select, Bitcast, ClipByValue, CheckNumerics, Bucketize."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple
from .broadcasting import SMALL, check_result
from .choosing import choose


def _select_broadcast(condition: Array, then: Array, otherwise: Array) -> Any:
    if condition.ndim == 0 and then.shape == otherwise.shape:
        return then if condition else otherwise
    try:
        is_one_shape = condition.shape == then.shape == otherwise.shape
        if not is_one_shape and condition.size * then.size * otherwise.size > SMALL:
            check_result(condition, then, otherwise)
        return choose(condition, then, otherwise)
    except ValueError:
        raise InvalidArgumentError(
            f"condition {shape_text(condition.shape)}, then {shape_text(then.shape)}, "
            f"and else {shape_text(otherwise.shape)} must be broadcastable"
        ) from None


def _select_rows(condition: Array, then: Array, otherwise: Array) -> Any:
    """Whole tensors by a scalar, rows by a vector, elements by a condition of the same shape."""
    shape = then.shape
    if shape != otherwise.shape:
        raise InvalidArgumentError(
            f"'then' and 'else' must have the same size.  but received: "
            f"{shape_text(shape)} vs. {shape_text(otherwise.shape)}"
        )
    if condition.ndim == 0:
        return then if condition else otherwise
    if condition.shape == shape:
        return choose(condition, then, otherwise)
    if condition.ndim != 1:
        raise InvalidArgumentError(
            "Inputs to operation Select of type Select must have the same size and shape.  "
            f"Input 0: {shape_text(condition.shape)} != input 1: {shape_text(shape)}"
        )
    require(len(shape) > 0, "'then' must be at least a vector, but saw shape: []")
    if shape[0] != condition.size:
        raise InvalidArgumentError(
            f"Number of batches of 'then' must match size of 'cond', but saw: {shape[0]} vs. {condition.size}"
        )
    return choose(condition.reshape((-1,) + (1,) * (len(shape) - 1)), then, otherwise)


simple("SelectV2", _select_broadcast)
simple("Select", _select_rows)


@kernel("Bitcast")
def bitcast(node: Construction) -> Kernel:
    """The same bytes read as another type; a last axis appears or disappears where the sizes of the types differ."""
    source, target = numpy_dtype(node.input_types[0]), numpy_dtype(node.output_types[0])
    if source.itemsize == target.itemsize:
        return lambda x: x.view(target)
    if source.itemsize > target.itemsize:
        return lambda x: np.ascontiguousarray(np.asarray(x)[..., None]).view(target)
    ratio = target.itemsize // source.itemsize

    def joined(x: Array) -> Array:
        if x.ndim == 0 or x.shape[-1] != ratio:
            raise InvalidArgumentError(
                f"Cannot bitcast from {int(node.input_types[0])} to {int(node.output_types[0])}: "
                f"the last of {shape_text(x.shape)} must be {ratio}"
            )
        return np.ascontiguousarray(x).view(target)[..., 0]

    return joined


def _clip(x: Array, low: Array, high: Array) -> Any:
    """x limited to [low, high], scalars or of x's shape; low takes precedence; complex parts are clipped separately."""
    if any(bound.ndim and bound.shape != x.shape for bound in (low, high)):
        raise InvalidArgumentError(
            "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
            f"input shape: {shape_text(x.shape)}clip_value_min shape: {shape_text(low.shape)}"
            f"clip_value_max shape: {shape_text(high.shape)}"
        )
    if x.dtype.kind == "c":
        result = np.array(x)
        result.real = np.maximum(np.minimum(x.real, high.real), low.real)
        result.imag = np.maximum(np.minimum(x.imag, high.imag), low.imag)
        return result
    return np.maximum(np.minimum(x, high), low)


simple("ClipByValue", _clip)


@kernel("CheckNumerics", "CheckNumericsV2")
def check_numerics(node: Construction) -> Kernel:
    """The input, or InvalidArgumentError if it has an infinity or NaN; version 2 gives the signs of infinities."""
    message, signed = node.attrs["message"].decode(errors="replace"), node.op == "CheckNumericsV2"

    def checked(x: Array) -> Array:
        if np.logical_and.reduce(np.isfinite(x), None):
            return x
        kinds = [("-Inf", x == -np.inf), ("+Inf", x == np.inf)] if signed else [("Inf", np.isinf(x))]
        bad = [kind for kind, where in (*kinds, ("NaN", np.isnan(x))) if where.any()]
        listed = " and ".join(bad) if len(bad) < 3 else f"{', '.join(bad[:-1])}, and {bad[-1]}"
        raise InvalidArgumentError(f"{message} : Tensor had {listed} values")

    return checked


@kernel("Bucketize")
def bucketize(node: Construction) -> Kernel:
    """For each element the number of boundaries that are not above it."""
    boundaries = node.attrs["boundaries"]
    require(list(boundaries) == sorted(boundaries), "Expected sorted boundaries")
    edges = np.array(boundaries, np.float32)  # as the attr holds them
    if node.input_types[0] is not DataType.FLOAT:
        edges = edges.astype(np.float64)
    return lambda x: np.searchsorted(edges, x, side="right").astype(np.int32)
