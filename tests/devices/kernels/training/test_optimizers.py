"""Optimiser steps equal their published formulas, written a second time in this file in float64 for scalars."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, exp, sqrt
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.training.optimizers import OPTIMIZERS
from partita.devices.state import DeviceState, Variable
from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import run, shapes

HYPER = {
    "alpha": 0.1, "lr": 0.1, "momentum": 0.9, "beta1_power": 0.5, "beta2_power": 0.6, "beta1": 0.9, "beta2": 0.99,
    "epsilon": 0.1, "rho": 0.9, "l1": 0.05, "l2": 0.03, "lr_power": -0.5, "sign_decay": 0.7,
    "beta": 0.8, "logbase": 0.5, "global_step": 3,
}  # fmt: skip
Numbers = tuple[float, ...]


def sign(x: float) -> float:
    return copysign(1, x) if x else 0.0


def momentum(g: float, var: float, accum: float) -> Numbers:
    accum = 0.9 * accum + g
    return var - 0.1 * accum, accum


def nesterov(g: float, var: float, accum: float) -> Numbers:
    accum = 0.9 * accum + g
    return var - 0.1 * (g + 0.9 * accum), accum


def adam(g: float, var: float, m: float, v: float) -> Numbers:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return var - 0.1 * sqrt(1 - 0.6) / (1 - 0.5) * m / (sqrt(v) + 0.1), m, v


def adamax(g: float, var: float, m: float, v: float) -> Numbers:
    m, v = 0.9 * m + 0.1 * g, max(0.99 * v, abs(g))
    return var - 0.1 / (1 - 0.5) * m / (v + 0.1), m, v


def adadelta(g: float, var: float, accum: float, update: float) -> Numbers:
    accum = 0.9 * accum + 0.1 * g * g
    change = sqrt(update + 0.1) / sqrt(accum + 0.1) * g
    return var - 0.1 * change, accum, 0.9 * update + 0.1 * change * change


def adagrad_da(g: float, var: float, total: float, squares: float) -> Numbers:
    total, squares = total + g, squares + g * g
    return -0.1 * sign(total) * max(abs(total) - 0.05 * 3, 0) / (0.03 * 3 * 0.1 + sqrt(squares)), total, squares


def rms_prop(g: float, var: float, ms: float, mom: float) -> Numbers:
    ms = 0.9 * ms + 0.1 * g * g
    mom = 0.9 * mom + 0.1 * g / sqrt(ms + 0.1)
    return var - mom, ms, mom


def ftrl(g: float, var: float, accum: float, linear: float) -> Numbers:
    grown = accum + g * g
    linear += g - (sqrt(grown) - sqrt(accum)) / 0.1 * var
    weight = sqrt(grown) / 0.1 + 2 * 0.03
    return (sign(linear) * 0.05 - linear) / weight if abs(linear) > 0.05 else 0.0, grown, linear


def proximal_gradient_descent(g: float, var: float) -> Numbers:
    x = var - 0.1 * g
    return (sign(x) * max(abs(x) - 0.1 * 0.05, 0) / (1 + 0.1 * 0.03),)


def power_sign(g: float, var: float, m: float) -> Numbers:
    m = 0.8 * m + (1 - 0.8) * g
    return var - 0.1 * exp(0.5 * 0.7 * sign(g) * sign(m)) * g, m


FORMULAS: dict[str, tuple[Callable[..., Numbers], dict[str, Any]]] = {
    "GradientDescent": (lambda g, var: (var - 0.1 * g,), {}),
    "Momentum": (momentum, {"use_nesterov": False}),
    "Momentum nesterov": (nesterov, {"use_nesterov": True}),
    "Adam": (adam, {}),
    "AdaMax": (adamax, {}),
    "Adagrad": (lambda g, var, a: (var - 0.1 * g / sqrt(a + g * g), a + g * g), {}),
    "AdagradV2": (lambda g, var, a: (var - 0.1 * g / (sqrt(a + g * g) + 0.1), a + g * g), {}),
    "AdagradDA": (adagrad_da, {}),
    "Adadelta": (adadelta, {}),
    "RMSProp": (rms_prop, {}),
    "Ftrl": (ftrl, {}),
    "ProximalGradientDescent": (proximal_gradient_descent, {}),
    "PowerSign": (power_sign, {}),
}
NUMBER = st.floats(-3, 3).filter(lambda x: x == 0 or abs(x) > 1e-3)


def arguments(name: str, gradient: np.ndarray, dtype: type = np.float64) -> list[np.ndarray]:
    """The inputs after the variables."""
    optimizer = OPTIMIZERS[name]
    names = optimizer.inputs[optimizer.variables :]
    return [
        gradient if n == optimizer.gradient else np.asarray(HYPER[n], np.int64 if n == "global_step" else dtype)
        for n in names
    ]


def variables(name: str, values: list[np.ndarray]) -> list[Variable]:
    optimizer = OPTIMIZERS[name]
    return [Variable(n, DataType.DOUBLE, v) for n, v in zip(optimizer.inputs, values, strict=False)]


def resources(state: DeviceState, values: list[np.ndarray]) -> list[np.ndarray]:
    handles = []
    for number, value in enumerate(values):
        handles.append(run("VarHandleOp", state=state, dtype=DataType.DOUBLE, shape=None, shared_name=f"v{number}"))
        run("AssignVariableOp", handles[-1], value, state=state)
    return handles


def read(state: DeviceState, handles: list[np.ndarray]) -> list[np.ndarray]:
    return [run("ReadVariableOp", handle, state=state, dtype=DataType.DOUBLE) for handle in handles]


@pytest.mark.parametrize("label", FORMULAS)
@given(st.lists(st.tuples(NUMBER, NUMBER, st.floats(0.5, 3), st.floats(0.5, 3)), max_size=4))
def test_a_step_is_the_published_formula(label: str, cases: list[tuple[float, float, float, float]]) -> None:
    """Reference and resource variables are updated element by element."""
    formula, attrs = FORMULAS[label]
    name = label.split()[0]
    count = OPTIMIZERS[name].variables
    columns = np.array(cases, np.float64).reshape(len(cases), 4).T
    gradient, values = columns[0].copy(), [columns[1 + i].copy() for i in range(count)]
    expected = [formula(case[0], *case[1 : 1 + count]) for case in cases]
    stored = variables(name, values)
    assert run(f"Apply{name}", *stored, *arguments(name, gradient), **attrs) is stored[0]
    state = DeviceState()
    handles = resources(state, values)
    run(f"ResourceApply{name}", *handles, *arguments(name, gradient), state=state, **attrs)
    for i, (variable, other) in enumerate(zip(stored, read(state, handles), strict=True)):
        np.testing.assert_allclose(variable.read(), [row[i] for row in expected], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(other, variable.read())


@pytest.mark.parametrize("name", ["Adagrad", "AdagradDA", "Momentum", "RMSProp", "Ftrl", "Adadelta"])
@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 99))
def test_a_sparse_step_is_dense_steps_on_its_rows(name: str, indices: list[int], seed: int) -> None:
    """A row that occurs twice takes two steps, in order; other rows stay."""
    rng = np.random.default_rng(seed)
    optimizer = OPTIMIZERS[name]
    values = [rng.random((4, 2)) + 0.5 for _ in range(optimizer.variables)]
    gradient = rng.standard_normal((len(indices), 2))
    expected = [value.copy() for value in values]
    for row, index in enumerate(indices):
        part = variables(name, [value[index : index + 1] for value in expected])
        run(f"Apply{name}", *part, *arguments(name, gradient[row : row + 1]))
        for value, variable in zip(expected, part, strict=True):
            value[index] = variable.read()[0]
    others = arguments(name, gradient)
    others.insert(next(i for i, value in enumerate(others) if value is gradient) + 1, np.array(indices, np.int32))
    stored = variables(name, values)
    run(f"SparseApply{name}", *stored, *others)
    for variable, value in zip(stored, expected, strict=True):
        np.testing.assert_allclose(variable.read(), value, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.complex64])
def test_a_step_keeps_the_element_type(dtype: type[np.generic]) -> None:
    """Half variables stay half."""
    kind = {np.float16: DataType.HALF, ml_dtypes.bfloat16: DataType.BFLOAT16, np.float32: DataType.FLOAT}
    variable = Variable("v", kind.get(dtype, DataType.COMPLEX64), np.ones(2, dtype))
    run("ApplyGradientDescent", variable, np.asarray(0.5, dtype), np.ones(2, dtype))
    assert variable.read().dtype == dtype
    np.testing.assert_array_equal(variable.read(), np.full(2, 0.5, dtype))


def test_half_types_are_rounded_after_each_operation() -> None:
    """A float32 step that is rounded once gives other numbers than TensorFlow."""
    variable = Variable("v", DataType.BFLOAT16, np.ones(1, ml_dtypes.bfloat16))
    alpha, delta = np.asarray(0.1, ml_dtypes.bfloat16), np.full(1, 1.0078125, ml_dtypes.bfloat16)
    run("ApplyGradientDescent", variable, alpha, delta)
    product = np.asarray(np.float32(alpha) * np.float32(delta)).astype(ml_dtypes.bfloat16)
    expected = np.asarray(1 - product.astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(variable.read(), expected)


def test_what_does_not_fit_is_named_and_changes_nothing() -> None:
    """Shapes, scalars, and slots that were never assigned are checked."""
    one, half = np.ones(3), np.asarray(0.5)
    variable, slot = Variable("v", DataType.DOUBLE, one), Variable("slot", DataType.DOUBLE)
    with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value slot"):
        run("ApplyMomentum", variable, slot, half, one, half)
    with pytest.raises(InvalidArgumentError, match=r"var and delta do not have the same shape\[3\] \[2\]"):
        run("ApplyGradientDescent", variable, half, np.ones(2))
    with pytest.raises(InvalidArgumentError, match=r"alpha is not a scalar: \[1\]"):
        run("ApplyGradientDescent", variable, np.ones(1), one)
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = 3 is not in \[0, 3\)"):
        run(
            "SparseApplyAdagrad",
            variable,
            Variable("a", DataType.DOUBLE, one),
            half,
            np.ones(1),
            np.array([3], np.int32),
        )
    rows = np.ones(1), np.array([0], np.int32)
    with pytest.raises(InvalidArgumentError, match=r"var and accum do not have the same shape\[3\] \[2\]"):
        run("SparseApplyAdagrad", variable, Variable("a", DataType.DOUBLE, np.ones(2)), half, *rows)
    np.testing.assert_array_equal(variable.read(), one)


def test_variable_slots_and_gradient_tell_one_shape() -> None:
    """Their shapes are merged, scalars are checked; a resource op has no output."""
    assert shapes("ApplyMomentum", (2, None), (None, 3), (), None, ()) == [(2, 3)]
    assert shapes("ResourceApplyGradientDescent", (), (), (2,), T=DataType.FLOAT) == []
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 0 but is rank 1"):
        shapes("ApplyGradientDescent", (2,), (2,), (2,))
