"""Shape functions of grey-scale dilation and its gradients; channels stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape
from .windows import WindowAttrs, joint_output_sizes, window_attrs


def dilation_attrs(attrs: Mapping[str, Any]) -> WindowAttrs:
    """The window attrs of a dilation, whose dilations are called rates."""
    return window_attrs({"strides": attrs["strides"], "dilations": attrs["rates"], "padding": attrs["padding"]})


@shape_fn("Dilation2D")
def dilation(c: ShapeContext) -> Sequence[Shape]:
    """The batch and channels of the images, and the output sizes along height and width."""
    attrs = dilation_attrs(c.attrs)
    x, w = with_rank(c.inputs[0], 4), with_rank(c.inputs[1], 3)
    spatial = joint_output_sizes(x[1:3], w[:2], attrs.strides, attrs.dilations, attrs.padding)
    merge_dims(x[3], w[2])
    return ((x[0], *spatial, w[2]),)


@shape_fn("Dilation2DBackpropInput")
def backprop_input(c: ShapeContext) -> Sequence[Shape]:
    return (c.inputs[0],)


@shape_fn("Dilation2DBackpropFilter")
def backprop_filter(c: ShapeContext) -> Sequence[Shape]:
    return (c.inputs[1],)
