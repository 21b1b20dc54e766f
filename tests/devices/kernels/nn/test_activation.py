"""Activations equal their formulas in float64, their gradients equal difference quotients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
FORMULAS = {
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Elu": lambda x: np.where(x < 0, np.exp(x) - 1, x),
    "Selu": lambda x: SELU_SCALE * np.where(x < 0, SELU_ALPHA * (np.exp(x) - 1), x),
    "LeakyRelu": lambda x: np.where(x > 0, x, np.float32(0.2) * x),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
}
ARRAYS = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), elements=st.floats(-20, 20)
)


@pytest.mark.parametrize("op", FORMULAS)
@given(ARRAYS)
def test_activation_is_its_formula(op: str, x: Array) -> None:
    """For arrays of any rank, scalars and empty arrays included."""
    np.testing.assert_allclose(check_shapes(op, x), FORMULAS[op](x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("op", FORMULAS)
@given(ARRAYS)
def test_gradient_is_the_slope(op: str, x: Array) -> None:
    """Away from the kinks, where a difference quotient means something; Elu and Selu take the activation."""
    x = x[(np.abs(x) > 1e-3) & (np.abs(x - 6) > 1e-3)]
    step = 1e-6
    slope = (FORMULAS[op](x + step) - FORMULAS[op](x - step)) / (2 * step)
    given_second = FORMULAS[op](x) if op in ("Elu", "Selu") else x
    got = check_shapes(f"{op}Grad", np.full_like(x, 3.0), given_second)
    np.testing.assert_allclose(got, 3 * slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float16"])
def test_clipping_activations_take_every_number_type(dtype: str) -> None:
    """The result has the type of the input."""
    x = np.array([0, 1, 5, 7], dtype)
    np.testing.assert_array_equal(check_shapes("Relu6", x), np.array([0, 1, 5, 6], dtype))
    np.testing.assert_array_equal(check_shapes("ReluGrad", x, x), x)


def test_softplus_does_not_overflow() -> None:
    """Large features pass, small ones vanish."""
    np.testing.assert_allclose(run("Softplus", np.array([-200, 200], np.float32)), [0, 200])


def test_gradients_refuse_unequal_shapes() -> None:
    """The message is TensorFlow's and names the node."""
    with pytest.raises(InvalidArgumentError) as caught:
        run("ReluGrad", np.ones(3, np.float32), np.ones(2, np.float32), name="g")
    assert caught.value.message == (
        "Inputs to operation g of type ReluGrad must have the same size and shape.  Input 0: [3] != input 1: [2]"
    )


def test_either_operand_tells_the_shape() -> None:
    """Both inputs of a gradient; of a bias addition the bias gives the channels."""
    assert shapes("ReluGrad", (None, 3), (2, None)) == [(2, 3)]
    assert shapes("BiasAdd", (None, None), (3,)) == [(None, 3)]
    assert shapes("BiasAddGrad", None) == [(None,)]
