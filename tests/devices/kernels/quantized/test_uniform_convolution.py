"""Convolutions of uniformly quantised tensors give TensorFlow's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes
from tests.devices.kernels.quantized.test_uniform_arithmetic import attrs, quantisation

IMAGE = np.array(
    [43, 78, -123, 78, -8, 3, 33, -55, 122, -115, -57, -30, 18, -24, -95, -117, -128, -116], np.int8
).reshape(1, 2, 3, 3)  # fmt: skip
FILTER = np.array([-90, 127, -80, 39, 64, -68, -56, -17, -61, 121, -83, 101, 76, 88, -99, -28], np.int8).reshape(
    (2,) * 4
)
PLAIN = (0.5, 3, 0.25, 0, 0.01, 5)
LAST = b"\x10\x03\x1a\x02\x01\x02 \x02(\x032\x02\x00\x01@\x03J\x02\x01\x02"
"""images [batch, rows, columns, channels], filters [rows, columns, channels, features]"""


def conv(*pairs: Any, x: Array = IMAGE, w: Array = FILTER, rhs: int = -1, output: int = -1, **more: Any) -> Array:
    types: dict[str, Any] = {"Tin": DataType.QINT8, "Tout": DataType.QINT32, "padding": "VALID"}
    settings = {**types, **attrs(lhs=-1, rhs=rhs, output=output), **more}
    result: Array = check_shapes("UniformQuantizedConvolution", x, w, *quantisation(*pairs or PLAIN), **settings)
    return result


def test_padding_and_zero_points() -> None:
    """Cells outside stand for zero."""
    valid = [[[[-54458, -253620], [-13320, 307080]], [[-195970, -261933], [730, 289118]]]]
    assert conv().tolist() == valid
    same = conv(padding="SAME")
    assert same[:, :, :2, :2].tolist() == valid
    assert same[0, 1, 2].tolist() == [-368695, -31133, -203783]
    assert conv(0.5, 3, 0.25, 2, 0.01, 5)[0, 0].tolist() == [[-54183, -246620], [-7645, 315205]]


def test_strides_dilations_and_groups() -> None:
    """Each spatial axis has its own."""
    got = conv(
        padding="EXPLICIT", explicit_padding=[1, 0, 0, 1], window_strides=[2, 1], lhs_dilation=[1, 2],
        rhs_dilation=[2, 1],
    )  # fmt: skip
    assert got.tolist() == [[[[-85495, 380, 29905, 20830, 68605]], [[-96370, -4433, 44830, 34305, 121280]]]]
    got = conv(w=FILTER[:, :1], feature_group_count=2)
    assert got[0, 1].tolist() == [[-50420, -99870], [-93158, -141958]]


def test_a_scale_for_each_feature() -> None:
    """Of the filter, and of the result too."""
    features = [0.25, 0.5], [1, 2]
    assert conv(0.5, 3, *features, 0.01, 5, rhs=0)[0, 1].tolist() == [[-391395, -509870], [12805, 594480]]
    got = conv(0.5, 3, *features, [0.01, 0.02], [5, 6], rhs=0, output=1)
    assert got[0, 1].tolist() == [[-195694, -254932], [6406, 297244]]


def test_other_axes() -> None:
    """The numbers of the axes are in an attr."""
    x, w = IMAGE.transpose(0, 2, 3, 1), FILTER.transpose(2, 3, 1, 0)
    got = conv(x=x, w=w, dimension_numbers=LAST)
    np.testing.assert_array_equal(got.transpose(0, 3, 1, 2), conv())


FLOATS = np.array(
    [-1.163226, -0.6292881, -0.4880058, -0.7133134, 0.55337846, -0.06308597, -0.5894313, 0.40963784, 0.8298553,
     -1.6430234, -0.25673014, -0.98074734, -0.17315522, -1.2894187, 0.020690395, -0.03788574, -0.30433774, -1.0479265],
    np.float32,
).reshape(1, 2, 3, 3)  # fmt: skip


def test_floats_become_bytes_for_each_image() -> None:
    """In a range with zero of each image alone."""
    types: dict[str, Any] = {"Tlhs": DataType.FLOAT, "Trhs": DataType.QINT8, "Tout": DataType.FLOAT, "padding": "VALID"}

    def hybrid(x: Array) -> Array:
        scales = quantisation(0.25, 1)
        got: Array = check_shapes("UniformQuantizedConvolutionHybrid", x, FILTER, *scales, **types, **attrs(rhs=-1))
        return got

    expected = [[[13.2299, 18.444767], [70.99102, -26.690121]], [[5.517914, -12.008009], [22.13469, -6.9604263]]]
    np.testing.assert_allclose(hybrid(FLOATS), [expected], rtol=1e-5)
    both = hybrid(np.concatenate([FLOATS, 9 * FLOATS + 1]))
    np.testing.assert_allclose(both[0], expected, rtol=1e-5)
    np.testing.assert_array_equal(both[1:], hybrid(9 * FLOATS + 1))


def test_what_is_refused() -> None:
    """Lists of another length than there are spatial axes, and channels that do not fit."""
    with pytest.raises(InvalidArgumentError, match=r"window_strides must be 2 positive numbers, got \[1\]"):
        conv(window_strides=[1])
    with pytest.raises(InvalidArgumentError, match="Expected the input features 2 to be 1 times the filter's 1"):
        conv(w=FILTER[:, :1])
