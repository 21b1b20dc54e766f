"""Axes and sizes go from one layout to another and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run

LAYOUTS = st.sampled_from([("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NDHWC", "NCDHW")])


@given(LAYOUTS, st.booleans())
def test_an_axis_leads_to_its_size(layouts: tuple[str, str], negative: bool) -> None:
    """The size at the mapped axis is the size at the axis; the other way round all is as before."""
    source, target = layouts
    there: dict[str, Any] = {"src_format": source, "dst_format": target}
    back: dict[str, Any] = {"src_format": target, "dst_format": source}
    sizes, axes = np.arange(10, 10 + len(source)), np.arange(len(source)) - len(source) * negative
    moved, mapped = (
        check_shapes("DataFormatVecPermute", sizes, **there),
        check_shapes("DataFormatDimMap", axes, **there),
    )
    np.testing.assert_array_equal(moved[mapped], sizes[axes])
    np.testing.assert_array_equal(run("DataFormatVecPermute", moved, **back), sizes)


def test_pairs_and_spatial_sizes() -> None:
    """Paddings are pairs; without batch and channels the order of the others counts."""
    pairs = np.array([[7, 4], [9, 3], [4, 5], [5, 1]], np.int32)
    assert check_shapes("DataFormatVecPermute", pairs).tolist() == [[7, 4], [5, 1], [9, 3], [4, 5]]
    assert run("DataFormatVecPermute", np.array([7, 4]), src_format="NHWC", dst_format="NCWH").tolist() == [4, 7]


def test_what_is_no_layout() -> None:
    """TensorFlow's messages."""
    with pytest.raises(InvalidArgumentError, match="Source format must be of length 4 or 5, received src_format = NHW"):
        run("DataFormatDimMap", np.array([0]), src_format="NHW")
    with pytest.raises(InvalidArgumentError, match=r"1D input must be of size 2 or 4, but got shape \[3\]"):
        run("DataFormatVecPermute", np.array([7, 4, 3]))
    with pytest.raises(InvalidArgumentError, match=r"Second dimension of 2D input must be of size 2"):
        run("DataFormatVecPermute", np.ones((4, 3), np.int32))
