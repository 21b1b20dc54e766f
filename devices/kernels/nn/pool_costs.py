"""Costs of poolings and their gradients: a few operations per point of the window."""

from __future__ import annotations

from math import prod

from ..op_cost import CostContext, flops


def _window(c: CostContext) -> int:
    """Points of a pooling window, from attr `ksize`, 1 where the window is an input."""
    return prod(c.attrs.get("ksize") or (1,))


@flops("MaxPool", "MaxPoolV2", "MaxPool3D", "MaxPoolWithArgmax")
def max_pool(c: CostContext) -> int:
    """Comparisons: one fewer than the window has points, at least one, per output point."""
    return max(1, _window(c) - 1) * c.elements_out()


@flops("AvgPool", "AvgPool3D")
def avg_pool(c: CostContext) -> int:
    """Per output point one addition fewer than the window has points, and one multiplication."""
    return _window(c) * c.elements_out()


@flops("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad", "MaxPoolGradWithArgmax")
def max_pool_gradient(c: CostContext) -> int:
    """Every window is searched again, and its maximum gets one addition. inputs: image, output, gradient."""
    return (_window(c) + 1) * c.elements_in(2)


@flops("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_gradient(c: CostContext) -> int:
    """One addition per window point, and one division per window. inputs: image sizes, gradient."""
    return (_window(c) + 1) * c.elements_in(1)


@flops("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def max_pool_second_gradient(c: CostContext) -> int:
    """Every window is searched again, and the gradient at its maximum is picked."""
    return _window(c) * c.elements_out()
