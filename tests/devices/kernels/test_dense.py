"""Kernels whose sums depend on strides copy views: the last bits of large sums are those of dense inputs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from partita.devices.kernels.dense import dense
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import run

IMAGES = np.random.default_rng(0).standard_normal((4, 9, 8, 7)).astype(np.float32)
FILTERS = np.random.default_rng(1).standard_normal((3, 3, 7, 5)).astype(np.float32)
CHANNELS, NONE = np.ones(9, np.float32), np.zeros(0, np.float32)
PADDED = {"strides": [1, 2, 1, 1], "padding": "SAME"}

CALLS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "bias gradients": ("BiasAddGrad", (IMAGES,), {"data_format": "NCHW"}),
    "batch norms": ("FusedBatchNormV3", (IMAGES, CHANNELS, CHANNELS, NONE, NONE), {"data_format": "NCHW"}),
    "convolutions": ("Conv2D", (IMAGES, FILTERS), PADDED),
    "depthwise ones": ("DepthwiseConv2dNative", (IMAGES, FILTERS), {"strides": [1, 1, 1, 1], "padding": "VALID"}),
    "norms": ("EuclideanNorm", (IMAGES, np.array([0, 2], np.int32)), {}),
    "sums of bfloat16": ("Sum", (IMAGES.astype(ml_dtypes.bfloat16), np.array([0, 2, 3], np.int32)), {}),
    "sums of float16": ("Sum", (IMAGES.astype(np.float16), np.array([0, 2, 3], np.int32)), {}),
    "means of halves": ("Mean", (IMAGES.astype(np.float16), np.array([0, 1, 2], np.int32)), {}),
    "resize gradients": ("ResizeBicubicGrad", (IMAGES, IMAGES[:, :3, :3]), {}),
}


@pytest.mark.parametrize(("op", "inputs", "attrs"), CALLS.values(), ids=CALLS.keys())
def test_views_give_the_bits_of_dense_inputs(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    expected = run(op, *inputs, **attrs)
    turned = [x.T.copy().T for x in inputs]
    mirrored = [x[::-1].copy()[::-1] for x in inputs]
    for views in (turned, mirrored):
        np.testing.assert_array_equal(_bytes(run(op, *views, **attrs)), _bytes(expected))


def _bytes(results: Array | tuple[Array, ...]) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in (results if isinstance(results, tuple) else (results,))]


def test_dense_arrays_and_scalars_are_not_copied() -> None:
    """Only views cost a copy."""
    assert dense(IMAGES) is IMAGES
    scalar = np.float32(1)
    assert dense(scalar) is scalar  # type: ignore[comparison-overlap, arg-type]  # kernels get scalars as arrays
    assert dense(IMAGES.T).flags.c_contiguous
