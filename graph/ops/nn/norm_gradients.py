"""Gradients of normalisations, and of the gradient of batch normalisation.

In training the mean and the variance are functions of the values; the outputs that hold them get no gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_ATTRS = ("epsilon", "data_format", "is_training")


@gradient("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", takes_none=True)
def fused_batch_norm(op: Forward, grad: Tensor | None, *_statistics: None) -> Gradients:
    """Calls the gradient op of the same version."""
    if grad is None:
        return [None] * 5
    x, scale, _, mean, variance = op.inputs
    version = op.op.removeprefix("FusedBatchNorm")
    _, _, _, *saved = op.outputs
    if not op.attrs["is_training"]:
        saved[:2] = mean, variance
    gradients = op.make_all(f"FusedBatchNormGrad{version}", grad, x, scale, *saved, **op.own_attrs(*_ATTRS))
    return *gradients[:3], None, None


class _Channels:
    """Sums per channel over all other axes, and values per channel spread over them."""

    def __init__(self, op: Forward) -> None:
        self.op = op
        layout = op.attrs["data_format"].decode()
        self.first = layout[1] == "C"
        self.axes = [axis for axis, letter in enumerate(layout) if letter != "C"]
        self.spread_shape = [-1 if letter == "C" else 1 for letter in layout]

    def sum(self, tensor: Tensor) -> Tensor:
        return self.op.make("Sum", tensor, self.op.g.constant(self.axes, DataType.INT32))

    def mean(self, tensor: Tensor) -> Tensor:
        return self.op.make("Mean", tensor, self.op.g.constant(self.axes, DataType.INT32))

    def spread(self, per_channel: Tensor) -> Tensor:
        if not self.first:
            return per_channel
        return self.op.make("Reshape", per_channel, self.op.g.constant(self.spread_shape, DataType.INT32))


@gradient("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(op: Forward, a: Tensor, b: Tensor, c: Tensor, *_reserved: Tensor | None) -> Gradients:
    """The gradient of <a, d x> + <b, d scale> + <c, d offset>, n = (x - mean) r, r = 1 / sqrt(variance + epsilon).

    In training d x = scale r (g - m(g) - n m(g n)), where m is the mean per channel, d scale = sum(g n) and d offset =
    sum(g). By n: h = b g - scale r (a m(g n) + g m(a n)), and n itself follows x as in batch normalisation; by r: scale
    N (m(a g) - m(a) m(g) - m(a n) m(g n)). With given statistics d x = scale r g.
    """
    kind = op.input_types[1]
    g, x, scale, first, second = (op.make("Cast", t, DstT=DataType.FLOAT) for t in op.inputs[:5])
    a = op.make("Cast", a, DstT=DataType.FLOAT)
    per = _Channels(op)
    if op.attrs["is_training"]:
        mean = per.mean(x)
        variance = per.mean(op.make("SquaredDifference", x, per.spread(mean)))
    else:
        mean, variance = first, second
    r = op.make("Rsqrt", variance + op.attrs["epsilon"])
    n = (x - per.spread(mean)) * per.spread(r)
    gradients = (_training if op.attrs["is_training"] else _inference)(per, g, n, r, scale, a, b, c)
    dg, dx = (op.make("Cast", tensor, DstT=kind) for tensor in gradients[:2])
    return dg, dx, gradients[2], *[None] * (len(op.input_types) - 3)


def _training(
    per: _Channels, g: Tensor, n: Tensor, r: Tensor, scale: Tensor, a: Tensor, b: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    of_a, of_g = per.mean(a), per.mean(g)
    of_an, of_gn = per.mean(a * n), per.mean(g * n)
    residual = per.mean(a * g) - of_a * of_g - of_an * of_gn
    slope = per.spread(scale * r)
    dg = slope * (a - per.spread(of_a) - n * per.spread(of_an)) + per.spread(b) * n + per.spread(c)
    h = per.spread(b) * g - slope * (a * per.spread(of_gn) + g * per.spread(of_an))
    along = n * per.spread(per.mean(h * n) + scale * r * residual)
    dx = per.spread(r) * (h - per.spread(per.mean(h)) - along)
    count = per.sum(per.op.make("OnesLike", g))
    return dg, dx, count * r * residual


def _inference(
    per: _Channels, g: Tensor, n: Tensor, r: Tensor, scale: Tensor, a: Tensor, b: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    dg = per.spread(scale * r) * a + per.spread(b) * n + per.spread(c)
    return dg, per.spread(r * b) * g, r * per.sum(a * g)


@gradient("BatchNormWithGlobalNormalization")
def global_batch_norm(op: Forward, grad: Tensor) -> Gradients:
    """y = (x - m) r gamma + beta, r = 1 / sqrt(v + epsilon); without `scale_after_normalization` gamma is 1."""
    x, m, v, _, gamma = op.inputs
    axes = op.g.constant([0, 1, 2], DataType.INT32)
    r = op.make("Rsqrt", v + op.attrs["variance_epsilon"])
    scaled = op.attrs["scale_after_normalization"]
    slope = r * gamma if scaled else r
    dbeta = op.make("Sum", grad, axes)
    centred = op.make("Sum", grad * (x - m), axes)
    dgamma = centred * r if scaled else op.make("ZerosLike", gamma)
    return grad * slope, -dbeta * slope, centred * slope * r * r * -0.5, dbeta, dgamma


@gradient("LRN")
def local_response(op: Forward, grad: Tensor) -> Gradients:
    """Calls LRNGrad."""
    attrs = op.own_attrs("depth_radius", "bias", "alpha", "beta")
    return (op.make("LRNGrad", grad, op.inputs[0], op.outputs[0], **attrs),)
