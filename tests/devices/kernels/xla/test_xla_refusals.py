"""What ops of XLA refuse by the values and shapes of their inputs; settings too large to be walked through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, PartitaError, ResourceExhaustedError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run
from tests.devices.kernels.xla.computed import binary, run_with
from tests.devices.kernels.xla.test_products import CHANNELS_LAST
from tests.devices.kernels.xla.test_slices import message

ONES, HUGE = np.ones(2, np.int32), np.iinfo(np.int64).max
CONV: dict[str, Any] = {"dimension_numbers": CHANNELS_LAST, "precision_config": ""}
NAN = np.full((2, 2), np.nan, np.float32)


def conv(**changed: Any) -> Array:
    """A convolution of an image [1, 4, 4, 2] with two windows [3, 3, 2]; inputs by name take the place of others."""
    inputs = {
        "lhs": np.ones((1, 4, 4, 2), np.float32),
        "rhs": np.ones((3, 3, 2, 2), np.float32),
        "strides": ONES,
        "padding": np.zeros((2, 2), np.int32),
        "lhs_dilation": ONES,
        "rhs_dilation": ONES,
        "groups": np.int32(1),
    }
    return np.asarray(run("XlaConv", *(inputs | changed).values(), **CONV))


@pytest.mark.parametrize("name", ["strides", "padding", "lhs_dilation", "rhs_dilation"])
def test_settings_of_a_convolution_may_be_left_out(name: str) -> None:
    """No numbers are ones, no widths are zeros."""
    nothing = np.zeros((0, 2) if name == "padding" else 0, np.int32)
    np.testing.assert_array_equal(conv(**{name: nothing}), conv())


@pytest.mark.parametrize("name", ["strides", "padding", "lhs_dilation", "rhs_dilation", "groups"])
@pytest.mark.parametrize("value", [np.zeros((2, 2, 2), np.int32), np.int32(0), np.array([0, 1], np.int32)])
def test_settings_of_a_convolution_that_do_not_fit(name: str, value: Array) -> None:
    """Of another rank, or none at all where a cell must move."""
    with pytest.raises(InvalidArgumentError, match=r"must (be|have)|feature_group_count"):
        conv(**{name: np.asarray(value)})


def test_groups_of_a_convolution_must_fit() -> None:
    """The output features are cut into as many parts."""
    with pytest.raises(InvalidArgumentError, match="output features 3 to be a multiple of the 2 groups"):
        conv(rhs=np.ones((3, 3, 1, 3), np.float32), groups=np.int32(2))


def test_a_border_that_does_not_fit() -> None:
    """It is refused before there is memory for it."""
    with pytest.raises(ResourceExhaustedError, match="OOM when allocating tensor"):
        conv(padding=np.array([[0, 0], [0, 2**31 - 1]], np.int32), lhs_dilation=np.array([1, 2**20], np.int32))
    widths = np.zeros(1, np.int64)
    with pytest.raises(ResourceExhaustedError, match="OOM when allocating tensor"):
        run("XlaPad", np.ones(2), np.float64(0), widths + 2**50, widths, widths)
    with pytest.raises(InvalidArgumentError, match="results in overflow"):
        run("XlaPad", np.ones(2), np.float64(0), widths + HUGE, widths + HUGE, widths)


@pytest.mark.parametrize(("low", "expected"), [(0, []), (2**62 - 2, [3.0]), (2**62 - 1, [1.0, 3.0])])
async def test_a_window_of_border_is_not_walked_through(low: int, expected: list[float]) -> None:
    """Only its cells that reach an element are."""
    x, one = np.array([1.0, 2.0]), np.ones(1, np.int64)
    (got,) = await run_with(
        "XlaReduceWindow", x, np.float64(0), one << 62, one, one, one, np.array([[low, 0]]), computation=binary("AddV2")
    )
    assert got.tolist() == expected


def gather(starts: Array, sizes: Array) -> Array:
    """Rows of a matrix [3, 4]."""
    numbers = message(f1=[1], f2=[0], f3=[0]) + bytes([4 << 3, 1])
    attrs: dict[str, Any] = {"dimension_numbers": numbers, "indices_are_sorted": False}
    return np.asarray(run("XlaGather", np.arange(12.0).reshape(3, 4), starts, sizes, **attrs))


@pytest.mark.parametrize(
    ("starts", "sizes"),
    [
        (np.array(1), np.array([1, 4])),  # no axis for the numbers of an index
        (np.zeros((2, 2), np.int64), np.array([1, 4])),  # two numbers, one is wanted
        (np.zeros((2, 1), np.int64), np.array([2, 4])),  # the result lacks the axis of size 2
        (np.zeros((2, 1), np.int64), np.array(1)),
        (np.zeros((2, 1), np.int64), np.array([1, 5])),
    ],
)
def test_gathers_that_do_not_fit(starts: Array, sizes: Array) -> None:
    """Start indices and sizes belong to the roles of the axes."""
    assert gather(np.array([[1], [9]]), np.array([1, 4])).tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    with pytest.raises(InvalidArgumentError):
        gather(starts, sizes)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "text"),
    [
        ("XlaBroadcastHelper", (np.ones((2, 2)), np.ones(2), np.array(1)), {}, "broadcast_dims must be a vector"),
        ("XlaSetDynamicDimensionSize", (np.ones(2), ONES, np.int32(1)), {}, "dim_index must be a scalar"),
        ("XlaSetDynamicDimensionSize", (np.ones(2), np.int32(0), ONES), {}, "size must be a scalar"),
        (
            "XlaRngBitGenerator",
            (ONES, np.zeros(2, np.uint64), ONES),
            {"dtype": DataType.UINT32},
            "algorithm must be a scalar",
        ),
        (
            "XlaRngBitGenerator",
            (np.int32(1), np.zeros(2, np.uint64), np.int32(1)),
            {"dtype": DataType.UINT32},
            "shape must be a vector",
        ),
    ],
)
def test_inputs_of_another_rank(op: str, inputs: tuple[Array, ...], attrs: dict[str, Any], text: str) -> None:
    """Each is named."""
    with pytest.raises(PartitaError, match=text):
        run(op, *inputs, **attrs)


async def test_the_axis_of_a_sort_is_a_scalar() -> None:
    """Two numbers are no axis."""
    with pytest.raises(InvalidArgumentError, match="dimension must be a scalar"):
        await run_with("XlaVariadicSort", [np.ones(3)], ONES, comparator=binary("Less"), is_stable=True)


def test_decompositions_of_what_is_not_a_number() -> None:
    """LAPACK finds nothing; the results are NaN in their shapes."""
    values, vectors = run("XlaSelfAdjointEig", NAN, lower=True, max_iter=9, epsilon=1e-6)
    assert (values.shape, vectors.shape, np.isnan(values).all()) == ((2,), (2, 2), True)
    s, u, v = run("XlaSvd", NAN[:, :1], max_iter=9, epsilon=1e-6, precision_config="")
    assert (s.shape, u.shape, v.shape, np.isnan(s).all()) == ((1,), (2, 2), (1, 1), True)
