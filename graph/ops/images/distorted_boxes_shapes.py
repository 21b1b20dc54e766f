"""Shape functions of random crops: begin [3], size [3] and one box [1, 1, 4]."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge, merge_dims, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox")
def sample_distorted_bounding_box(c: ShapeContext) -> Sequence[Shape]:
    """The image's size is [3], boxes are [batch, boxes, 4], the share to cover is a scalar, a seed is [2]."""
    merge(c.inputs[0], (3,))
    merge_dims(with_rank(c.inputs[1], 3)[2], 4)
    for share in c.inputs[2:3]:
        with_rank(share, 0)
    for seed in c.inputs[3:]:
        merge(seed, (2,))
    return ((3,), (3,), (1, 1, 4))
