"""The ops of images.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp, State

OPS: FactsByOp = {
    "AdjustContrast": {},
    "AdjustContrastv2": {},
    "AdjustHue": {},
    "AdjustSaturation": {},
    "CombinedNonMaxSuppression": {},
    "CropAndResize": {},
    "CropAndResizeGradBoxes": {},
    "CropAndResizeGradImage": {},
    "DrawBoundingBoxes": {"is_flat": True},
    "DrawBoundingBoxesV2": {},
    "ExtractGlimpse": {"is_flat": True, "keeps_by_node": True},
    "ExtractGlimpseV2": {"keeps_by_node": True},
    "GenerateBoundingBoxProposals": {"is_flat": True},
    "HSVToRGB": {"is_flat": True},
    "ImageProjectiveTransformV2": {},
    "ImageProjectiveTransformV3": {},
    "NonMaxSuppression": {"is_flat": True},
    "NonMaxSuppressionV2": {"is_flat": True},
    "NonMaxSuppressionV3": {},
    "NonMaxSuppressionV4": {},
    "NonMaxSuppressionV5": {},
    "NonMaxSuppressionWithOverlaps": {"is_flat": True},
    "RGBToHSV": {},
    "ResizeArea": {},
    "ResizeBicubic": {},
    "ResizeBicubicGrad": {},
    "ResizeBilinear": {},
    "ResizeBilinearGrad": {"is_flat": True},
    "ResizeNearestNeighbor": {},
    "ResizeNearestNeighborGrad": {},
    "SampleDistortedBoundingBox": {"state": State.RANDOM, "is_flat": True},
    "SampleDistortedBoundingBoxV2": {"state": State.RANDOM, "is_flat": True},
    "ScaleAndTranslate": {},
    "ScaleAndTranslateGrad": {},
    "StatelessSampleDistortedBoundingBox": {},
}
