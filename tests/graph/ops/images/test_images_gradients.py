"""Slopes of ops on images are what their gradients say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.gradients.numeric import SINGLE, between, example, normal, single

IMAGES = {
    **{
        f"{op} {how}": example(
            lambda b, x, op=op, how=how: b.op(op, x, b.constant([5, 3]), attrs={how: True}),
            normal(1, 3, 4, 2).astype(dtype),
            **SINGLE,
        )
        for op, dtype in (("ResizeBilinear", "f4"), ("ResizeBicubic", "f4"), ("ResizeNearestNeighbor", "f4"))
        for how in ("align_corners", "half_pixel_centers")
    },
    **{
        f"scaled {kind}": example(
            lambda b, x, kind=kind: b.op(
                "ScaleAndTranslate",
                x,
                b.constant([5, 3]),
                b.constant(single(np.array([1.5, 0.6]))),
                b.constant(single(np.array([0.2, 0.1]))),
                kernel_type=kind,
            ),
            single(normal(1, 3, 4, 2)),
            **SINGLE,
        )
        for kind in ("lanczos3", "triangle")
    },
    **{
        f"crops {size}": example(
            lambda b, x, boxes, size=size: b.op(
                "CropAndResize", x, boxes, b.constant([1, 0, 1]), b.constant(size), extrapolation_value=0.5
            ),
            single(normal(2, 5, 4, 2)),
            single(np.array([[0.1, 0.22, 0.7, 0.9], [0.03, -0.2, 1.2, 0.81], [0.93, 0.7, 0.13, 0.29]])),
            **{**SINGLE, "step": 1e-3},
        )
        for size in ([3, 4], [1, 2])
    },
    "crops, nearest": example(
        lambda b, x: b.op(
            "CropAndResize",
            x,
            b.constant(single(np.array([[0.1, 0.2, 0.7, 0.9]]))),
            b.constant([1]),
            b.constant([3, 4]),
            method="nearest",
        ),
        single(normal(2, 5, 4, 2)),
        **SINGLE,
    ),
    "colour": example(lambda b, x: b.op("RGBToHSV", x), between(0.05, 0.95, 20, 3), rtol=1e-4),
    **{
        f"moved {version}": example(
            lambda b, x, version=version: b.op(
                f"ImageProjectiveTransform{version}",
                x,
                b.constant(single(np.array([[1, 0, 1, 0, 1, -1, 0, 0.0]]))),
                b.constant([4, 5]),
                *([b.constant(0.0)] if version == "V3" else []),
                interpolation="NEAREST",
            ),
            single(normal(1, 4, 5, 2)),
            **SINGLE,
        )
        for version in ("V2", "V3")
    },
}


@pytest.mark.parametrize("name", IMAGES)
async def test_images(name: str) -> None:
    """Resized, cropped, moved or in other colours."""
    await IMAGES[name].check()


async def test_colours_of_open_shapes() -> None:
    """The shape of the images is not known before the run."""
    await IMAGES["colour"].check(open_shapes=True)
