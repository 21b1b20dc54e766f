"""Costs of changes of images: a few operations per point that is read or written; docstrings say which."""

from __future__ import annotations

from ..op_cost import CostContext, elements_read, flops, moves

moves("ExtractGlimpse", "ExtractGlimpseV2", "ResizeNearestNeighbor")
flops("ResizeNearestNeighborGrad")(elements_read)


@flops("AdjustContrastv2")
def contrast(c: CostContext) -> int:
    """An addition for the mean, then a difference, a product and a sum per element."""
    return 4 * c.elements_in()


@flops("AdjustContrast")
def contrast_within(c: CostContext) -> int:
    """And two comparisons."""
    return 6 * c.elements_in()


@flops("HSVToRGB", "RGBToHSV")
def one_colour_space(c: CostContext) -> int:
    """About 20 operations per point of three channels."""
    return 7 * c.elements_in()


@flops("AdjustHue", "AdjustSaturation")
def both_colour_spaces(c: CostContext) -> int:
    """To hue, saturation and value, and back."""
    return 15 * c.elements_in()


@flops("CropAndResize", "ImageProjectiveTransformV2", "ImageProjectiveTransformV3", "ResizeBilinear")
def bilinear(c: CostContext) -> int:
    """Three mixes of two points, each a difference, a product and a sum, per element."""
    return 9 * c.elements_out()


@flops("CropAndResizeGradImage", "ResizeBilinearGrad")
def bilinear_gradient(c: CostContext) -> int:
    """Four shares per element of the gradient, each a product and a sum."""
    return 8 * c.elements_in()


@flops("CropAndResizeGradBoxes")
def box_gradient(c: CostContext) -> int:
    """Two slopes from four points, and their products with the gradient."""
    return 14 * c.elements_in()


@flops("ResizeBicubic")
def bicubic(c: CostContext) -> int:
    """Four rows and a column of four products and sums."""
    return 40 * c.elements_out()


@flops("ResizeBicubicGrad")
def bicubic_gradient(c: CostContext) -> int:
    """Sixteen shares per element of the gradient."""
    return 32 * c.elements_in()


@flops("ResizeArea", "ScaleAndTranslate")
def area(c: CostContext) -> int:
    """Each point that is read is weighted and added once, and each point that is written is divided."""
    return 2 * c.elements_in() + c.elements_out()


@flops("ScaleAndTranslateGrad")
def area_gradient(c: CostContext) -> int:
    """As forth, the other way."""
    return 2 * c.elements_out() + c.elements_in()


moves("DrawBoundingBoxes", "DrawBoundingBoxesV2")
