"""Slopes of reductions, running reductions and segments are what their gradients say."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from tests.graph.gradients.numeric import Example, check, complex_normal, distinct, example, known, normal

BOTH = [False, True]

REDUCTIONS = ["Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"]


AXES: list[list[int] | int] = [[], 0, [1], [-1, 0], [0, 1, 2], [0, 2]]


@pytest.mark.parametrize("keep_dims", BOTH)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
async def test_reductions(op: str, axes: list[int] | int, keep_dims: bool) -> None:
    """Over any axes, known before the run or not."""
    x = distinct(2, 3, 4)

    def build(b: GraphBuilder, x: Tensor) -> Operation:
        return b.op(op, x, b.constant(np.array(axes, np.int32)), keep_dims=keep_dims)

    await check(build, x, twice=op in ("Prod", "EuclideanNorm"), rtol=1e-4, atol=1e-5)
    await check(build, x, open_shapes=True)


async def test_axes_may_be_computed() -> None:
    """Gradients are right for axes that are fed, those of products and extrema too."""

    def build(b: GraphBuilder, x: Tensor) -> list[Operation]:
        axes = b.op("Range", b.constant(0), b.op("Rank", x), b.constant(2))
        return [b.op(op, x, axes) for op in REDUCTIONS]

    await check(build, distinct(2, 3, 4), rtol=1e-4)
    await check(build, distinct(2, 3, 4), rtol=1e-4, open_shapes=True)


async def test_products_with_zeros() -> None:
    """There is no division, so zeros are handled exactly."""
    x = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
    await check(lambda b, x: b.op("Prod", x, b.constant(1)), x, twice=False)
    await check(lambda b, x: b.op("Prod", x, b.constant([0, 1])), x)


async def test_complex_reductions() -> None:
    """Sums, means and products of complex numbers."""
    for op in ("Sum", "Mean", "Prod"):
        await check(lambda b, x, op=op: b.op(op, x, b.constant([0])), complex_normal(2, 3))


async def test_l2_loss() -> None:
    """Half the sum of squares."""
    await check(lambda b, x: b.op("L2Loss", x), normal(2, 3), twice=True)


RUNNING = [(op, *how) for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp") for how in product(BOTH, BOTH)]


@pytest.mark.parametrize(
    ("op", "exclusive", "reverse"),
    [case for case in RUNNING if case[:2] != ("CumulativeLogsumexp", True)],  # of nothing it is -inf
)
async def test_running_reductions(op: str, exclusive: bool, reverse: bool) -> None:
    """From either end, with or without the element itself."""
    await check(
        lambda b, x: b.op(op, x, b.constant(-1), exclusive=exclusive, reverse=reverse),
        normal(2, 4) + 2,
        twice=op == "Cumprod",
        rtol=1e-4,
    )


SEGMENTS = [0, 0, 2, 2, 2]


UNSORTED = [2, 0, -1, 1, 0]


def segment(op: str, x: np.ndarray) -> Example:
    """An op on segments in order."""
    return example(lambda b, x: b.op(op, x, known(b, SEGMENTS)), x)


def unsorted(op: str, x: np.ndarray) -> Example:
    """An op on segments in any order, one element in none."""
    return example(lambda b, x: b.op(op, x, known(b, UNSORTED), known(b, 3)), x)


ZEROS = np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 3.0]])


SEGMENTED = {
    **{op: segment(op, distinct(5, 2)) for op in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin")},
    "SegmentProd": segment("SegmentProd", normal(5, 2)),
    "SegmentProd of zeros": segment("SegmentProd", ZEROS),
    **{f"Unsorted{op}": unsorted(f"UnsortedSegment{op}", distinct(5, 2)) for op in ("Sum", "Max", "Min")},
    "UnsortedProd": unsorted("UnsortedSegmentProd", normal(5, 2)),
    "UnsortedProd of zeros": unsorted("UnsortedSegmentProd", ZEROS),
}


@pytest.mark.parametrize("open_shapes", BOTH)
@pytest.mark.parametrize("name", SEGMENTED)
async def test_segments(name: str, open_shapes: bool) -> None:
    """With known shapes and with shapes that are unknown before the run."""
    await SEGMENTED[name].check(open_shapes=open_shapes)


async def test_isotonic_regression() -> None:
    """The elements of a run share the gradient of the run."""
    x = np.array([[3.0, 1.0, 2.0, 5.0], [9.0, 4.0, 3.0, 7.5]])
    await check(lambda b, x: b.op("IsotonicRegression", x, output_dtype="float64")[0], x)
    await check(lambda b, x: b.op("IsotonicRegression", x, output_dtype="float64")[0], x, open_shapes=True)
