"""Computing into the buffer of an input gives the bits that the kernel gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels import in_place
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from partita.graph.graph import Graph
from partita.graph.ops.properties import NodeProperties
from tests.devices.kernels.draws import pairs
from tests.devices.kernels.harness import run

UNARY = ("Exp", "Neg", "Relu", "Sqrt", "Square")
BINARY = ("Add", "AddV2", "Maximum", "Minimum", "Mul", "RealDiv", "Sub")
WHOLE: list[np.dtype[Any]] = [np.dtype(np.float32), np.dtype(np.float64)]


def properties(op: str, dtype: DataType) -> NodeProperties:
    graph = Graph()
    return graph.add_node("n", op, {"T": dtype}).properties


def test_each_op_of_the_table_is_tested_here() -> None:
    assert set(in_place._FUNCTIONS) == {*UNARY, *BINARY, "BiasAdd"}


@pytest.mark.parametrize("op", UNARY)
@given(operands=pairs(WHOLE))
def test_one_operand(op: str, operands: tuple[Array, Array]) -> None:
    """The buffer of the operand ends up with what the kernel returns."""
    value = np.array(operands[0])
    expected = run(op, value)
    function = in_place.into(properties(op, DataType.FLOAT))
    assert function is not None
    with np.errstate(all="ignore"):
        function(value, out=value)
    np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("op", BINARY)
@given(operands=pairs(WHOLE), into_first=st.booleans())
def test_two_operands(op: str, operands: tuple[Array, Array], into_first: bool) -> None:
    """So does the buffer of either operand, if the result has its shape."""
    values = [np.array(value) for value in operands]
    out = values[0 if into_first else 1]
    expected = np.asarray(run(op, *values))
    function = in_place.into(properties(op, DataType.FLOAT))
    assert function is not None
    with np.errstate(all="ignore"):
        if out.shape == expected.shape:
            np.testing.assert_array_equal(function(*values, out=out), expected)
            np.testing.assert_array_equal(out, expected)
        else:
            with pytest.raises(ValueError, match="broadcast"):
                function(*values, out=out)


def test_a_bias_is_added_in_place_if_there_is_one_per_channel() -> None:
    function = in_place.into(properties("BiasAdd", DataType.FLOAT))
    assert function is not None
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    function(value, np.array([1, 2, 3], np.float32), out=value)
    np.testing.assert_array_equal(value, [[1, 3, 5], [4, 6, 8]])
    with pytest.raises(InvalidArgumentError, match=r"Biases must be 1D: \[2,3\]"):
        function(value, value, out=value)
    channels_first = Graph().add_node("n", "BiasAdd", {"T": DataType.FLOAT, "data_format": "NCHW"}).properties
    assert in_place.into(channels_first) is None


@pytest.mark.parametrize("dtype", [DataType.HALF, DataType.BFLOAT16, DataType.INT32, DataType.STRING])
def test_other_types_have_no_function(dtype: DataType) -> None:
    assert in_place.into(properties("Add", dtype)) is None
