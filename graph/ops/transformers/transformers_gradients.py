"""Gradients of the ops that transformers are made of.

Those of attention, norms and activations are ops of their own, which have no gradient. Rotary positions turn back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import reshape_like
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_ATTENTION = ("causal", "scale", "window", "query_offset", "key_offset", "sequence_first")


@gradient("Partita>FlashAttention", takes_none=True)
def flash_attention(op: Forward, d_output: Tensor | None, d_logsumexp: Tensor | None) -> Gradients:
    """Calls FlashAttentionGrad, which computes the products again; without d_logsumexp where nothing depends on it."""
    attrs = op.own_attrs(*_ATTENTION)
    slopes = [] if d_logsumexp is None else [d_logsumexp]
    if d_output is None:
        d_output = op.make("ZerosLike", op.outputs[0])
    return op.make_all("Partita>FlashAttentionGrad", *op.inputs, *op.outputs, d_output, slopes, **attrs)


@gradient("Partita>RMSNorm", takes_none=True)
def rms_norm(op: Forward, d_y: Tensor | None, d_inverse_rms: Tensor | None) -> Gradients:
    """Calls RMSNormGrad; by r = 1 / sqrt(mean(x^2) + epsilon) itself: d x = -g r^3 x / n."""
    x, gain = op.inputs
    factors = op.outputs[1]
    d_x = d_gain = None
    if d_y is not None:
        d_x, d_gain = op.make_all("Partita>RMSNormGrad", x, gain, factors, d_y)
    if d_inverse_rms is not None:
        d_x = _also(d_x, _through_factors(op, d_inverse_rms, factors, op.make("Cast", x, DstT=op.output_types[1])))
    return d_x, d_gain


@gradient("Partita>LayerNorm", takes_none=True)
def layer_norm(op: Forward, d_y: Tensor | None, d_mean: Tensor | None, d_deviation: Tensor | None) -> Gradients:
    """Calls LayerNormGrad; by the mean itself: d x = g / n, by the factor as RMSNorm's, of x - mean."""
    x, gain, _ = op.inputs
    _, mean, factors = op.outputs
    d_x = d_gain = d_offset = None
    if d_y is not None:
        d_x, d_gain, d_offset = op.make_all("Partita>LayerNormGrad", x, gain, mean, factors, d_y)
    if d_mean is not None:
        each = op.make("ExpandDims", d_mean / _row_size(op), op.g.constant(-1))
        d_x = _also(d_x, op.make("BroadcastTo", op.make("Cast", each, DstT=x.dtype), op.make("Shape", x)))
    if d_deviation is not None:
        centred = op.make("Cast", x, DstT=mean.dtype) - op.make("ExpandDims", mean, op.g.constant(-1))
        d_x = _also(d_x, _through_factors(op, d_deviation, factors, centred))
    return d_x, d_gain, d_offset


def _also(d_x: Tensor | None, more: Tensor) -> Tensor:
    return more if d_x is None else d_x + more


def _row_size(op: Forward) -> Tensor:
    """The length of a row, in the type of what the gradient reads again."""
    return op.make("Cast", op.make("Size", op.inputs[1]), DstT=op.output_types[1])


def _through_factors(op: Forward, d_factors: Tensor, factors: Tensor, values: Tensor) -> Tensor:
    """By r = 1 / sqrt(mean(v^2) + epsilon) of each row v: -g r^3 v / n."""
    slope = op.make("ExpandDims", -d_factors * factors * factors * factors / _row_size(op), op.g.constant(-1))
    return op.make("Cast", slope * values, DstT=op.input_types[0])


@gradient("Partita>Gelu")
def gelu(op: Forward, d_y: Tensor) -> Gradients:
    """Calls GeluGrad."""
    return (op.make("Partita>GeluGrad", *op.inputs, d_y, **op.own_attrs("approximate")),)


@gradient("Partita>GatedSilu")
def gated_silu(op: Forward, d_y: Tensor) -> Gradients:
    """Calls GatedSiluGrad."""
    return op.make_all("Partita>GatedSiluGrad", *op.inputs, d_y)


@gradient("Partita>Rotary")
def rotary(op: Forward, grad: Tensor) -> Gradients:
    """Turned back by the same angles; to the tables flows what `_tables` says."""
    attrs = op.own_attrs("interleaved", "sequence_first")
    d_x = op.make("Partita>Rotary", grad, *op.inputs[1:], inverse=not op.attrs["inverse"], **attrs)
    return d_x, *_tables(op, grad)


def _tables(op: Forward, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """With pairs (a, b) of x and (g, h) of the gradient: d cos = sum(g a + h b), d sin = +-sum(h a - g b)."""
    if not (op.wants(1) or op.wants(2)):
        return None, None
    pairs = _Pairs(op)
    (a, b), (g, h) = pairs.of(op.inputs[0]), pairs.of(grad)
    d_cosines = pairs.summed(g * a + h * b, 1)
    d_sines = pairs.summed(g * b - h * a if op.attrs["inverse"] else h * a - g * b, 2)
    return d_cosines, d_sines


class _Pairs:
    """The elements that are turned together, and sums of them over batch and heads."""

    def __init__(self, op: Forward) -> None:
        self.op = op
        shape = op.make("Shape", op.inputs[1])
        columns = op.make("StridedSlice", shape, *(op.g.constant([at]) for at in (1, 2, 1)))
        self.half, self.turned = columns, columns * 2
        self.sum_axes = op.g.constant([1, 2] if op.attrs["sequence_first"] else [0, 2], DataType.INT32)

    def of(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        """First and second elements of all pairs, in the type of the tables."""
        zero, one, two = (self.op.g.constant([number], DataType.INT32) for number in (0, 1, 2))
        if self.op.attrs["interleaved"]:
            first, second = self._part(tensor, zero, self.turned, two), self._part(tensor, one, self.turned, two)
        else:
            first, second = self._part(tensor, zero, self.half, one), self._part(tensor, self.half, self.turned, one)
        return first, second

    def _part(self, tensor: Tensor, begin: Tensor, end: Tensor, step: Tensor) -> Tensor:
        part = self.op.make("StridedSlice", tensor, *self._last(begin, end, step), ellipsis_mask=1)
        return self.op.make("Cast", part, DstT=self.op.input_types[1])

    def _last(self, *bounds: Tensor) -> list[Tensor]:
        """Bounds of the last axis, behind an ellipsis."""
        zero, axis = self.op.g.constant([0], DataType.INT32), self.op.g.constant(0, DataType.INT32)
        fill = (zero, zero, self.op.g.constant([1], DataType.INT32))
        return [self.op.make("ConcatV2", list(pair), axis) for pair in zip(fill, bounds, strict=True)]

    def summed(self, tensor: Tensor, port: int) -> Tensor:
        """The sum over batch and heads, in the shape of a table."""
        return reshape_like(self.op, self.op.make("Sum", tensor, self.sum_axes), port)
