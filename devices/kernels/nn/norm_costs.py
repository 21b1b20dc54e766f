"""Costs of normalisations and their gradients; each docstring lists the steps that a count adds up."""

from __future__ import annotations

from ..op_cost import CostContext, bytes_moved, flops, input_bytes, output_bytes


def _is_training(c: CostContext) -> bool:
    return bool(c.attrs.get("is_training", True))


@flops("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(c: CostContext) -> int:
    """Per element: scale and shift (2); in training also the sum (1) and the squared deviations (3)."""
    return (6 if _is_training(c) else 2) * c.elements_in()


@flops("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm_gradient(c: CostContext) -> int:
    """Per element: normalise (2), its product with the gradient and both sums (3), and the input's gradient (6)."""
    return 11 * c.elements_in()


@bytes_moved("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm_bytes(c: CostContext) -> int:
    """In training the image is read twice: its statistics are known only after all of it has been read.

    Jung et al.: Restructuring Batch Normalization to Accelerate CNN Training (2018), section 3.
    """
    return input_bytes(c) + output_bytes(c) + (c.bytes_in(0) if _is_training(c) else 0)


@bytes_moved("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm_gradient_bytes(c: CostContext) -> int:
    """In training image and gradient are read twice: for their sums, and for what these say of each element."""
    return input_bytes(c) + output_bytes(c) + (c.bytes_in(0) + c.bytes_in(1) if _is_training(c) else 0)


@flops("LRN")
def local_response_norm(c: CostContext) -> int:
    """Per element: a square, a window of 2 * radius + 1 additions, a power and a division."""
    return (2 * int(c.attrs.get("depth_radius", 5)) + 4) * c.elements_in()


@flops("LRNGrad")
def local_response_norm_gradient(c: CostContext) -> int:
    """Per element: the window of the norm, the power, and a window of products."""
    return (4 * int(c.attrs.get("depth_radius", 5)) + 8) * c.elements_in()


@flops("BatchNormWithGlobalNormalization")
def batch_norm_with_statistics(c: CostContext) -> int:
    """Per element: scale and shift (2)."""
    return 2 * c.elements_in()
