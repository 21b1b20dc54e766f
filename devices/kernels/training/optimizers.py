"""Optimiser steps: new values of a variable and its slots from a gradient.

An op and its Resource form compute the same. Half types are rounded after each operation of a formula, as in
TensorFlow. A refused step leaves all variables unchanged.

Each optimiser is a table row: the op's inputs in order, of which the first few are variables, and a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ...state import Variable
from ..arrays.indices import rows_and_steps, run_starts
from ..checks import require
from ..registry import Construction, Kernel, kernel
from ..variables.variable_scatter import check_rows
from ..variables.variables import initialised_variable_of, updating
from . import optimizer_formulas as formulas
from .optimizer_formulas import Formula


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimiser: its input names in order, the number of leading variables among them, and its formula by attrs."""

    inputs: tuple[str, ...]
    variables: int
    formula: Callable[[Mapping[str, bool]], Formula]

    @property
    def gradient(self) -> str:
        """The name of the gradient among the op's inputs."""
        return "delta" if "delta" in self.inputs else "grad"


def _row(variables: str, others: str, formula: Callable[[Mapping[str, bool]], Formula]) -> Optimizer:
    return Optimizer((*variables.split(), *others.split()), len(variables.split()), formula)


OPTIMIZERS = {
    "GradientDescent": _row("var", "alpha delta", formulas.gradient_descent),
    "Momentum": _row("var accum", "lr grad momentum", formulas.momentum),
    "KerasMomentum": _row("var accum", "lr grad momentum", formulas.keras_momentum),
    "Adam": _row("var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", formulas.adam),
    "AdamWithAmsgrad": _row("var m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad", formulas.amsgrad),
    "AdaMax": _row("var m v", "beta1_power lr beta1 beta2 epsilon grad", formulas.adamax),
    "Adagrad": _row("var accum", "lr grad", formulas.adagrad),
    "AdagradV2": _row("var accum", "lr epsilon grad", formulas.adagrad_v2),
    "AdagradDA": _row(
        "var gradient_accumulator gradient_squared_accumulator", "grad lr l1 l2 global_step", formulas.adagrad_da
    ),
    "Adadelta": _row("var accum accum_update", "lr rho epsilon grad", formulas.adadelta),
    "RMSProp": _row("var ms mom", "lr rho momentum epsilon grad", formulas.rms_prop),
    "CenteredRMSProp": _row("var mg ms mom", "lr rho momentum epsilon grad", formulas.centered_rms_prop),
    "Ftrl": _row("var accum linear", "grad lr l1 l2 lr_power", formulas.ftrl),
    "FtrlV2": _row("var accum linear", "grad lr l1 l2 l2_shrinkage lr_power", formulas.ftrl),
    "ProximalGradientDescent": _row("var", "alpha l1 l2 delta", formulas.proximal_gradient_descent),
    "ProximalAdagrad": _row("var accum", "lr l1 l2 grad", formulas.proximal_adagrad),
    "AddSign": _row("var m", "lr alpha sign_decay beta grad", formulas.add_sign),
    "PowerSign": _row("var m", "lr logbase sign_decay beta grad", formulas.power_sign),
}
_RESOURCE_ONLY = {"KerasMomentum", "AdamWithAmsgrad"}
# These have a form for gradients of some rows only; the row numbers come right after the gradient.
_SPARSE = [
    "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "CenteredRMSProp", "Ftrl", "FtrlV2", "KerasMomentum", "Momentum",
    "ProximalAdagrad", "ProximalGradientDescent", "RMSProp",
]  # fmt: skip


_SIGNED = [OPTIMIZERS[name] for name in ("Ftrl", "FtrlV2", "ProximalAdagrad")]
"""those that check the signs of rates if the gradient is sparse"""


def _check_shapes(optimizer: Optimizer, values: Mapping[str, Array]) -> None:
    """InvalidArgumentError unless all slots are as large as the variable, and the other inputs scalars."""
    var = values["var"]
    for index, name in enumerate(optimizer.inputs):
        shape = values[name].shape
        if index < optimizer.variables:
            _check_same(var, name, shape)
        elif name != optimizer.gradient and shape:
            raise InvalidArgumentError(f"{name} is not a scalar: {shape_text(shape)}")


def _check_signs(values: Mapping[str, Array]) -> None:
    """InvalidArgumentError for rates of the wrong sign, and for those that are no number."""
    require("lr" not in values or bool(values["lr"] > 0), "lr is not a positive scalar")
    for name in ("l1", "l2", "l2_shrinkage"):
        require(name not in values or bool(values[name] >= 0), f"{name} is not a non-negative scalar")
    require("lr_power" not in values or bool(values["lr_power"] <= 0), "lr_power is not a non-positive scalar")


def _check_same(var: Array, name: str, shape: tuple[int, ...]) -> None:
    if shape != var.shape:
        raise InvalidArgumentError(
            f"var and {name} do not have the same shape{shape_text(var.shape)} {shape_text(shape)}"
        )


def _ops(prefix: str, names: Iterable[str]) -> list[str]:
    """The ops of these optimisers, for reference and for resource variables."""
    reference = [f"{prefix}{name}" for name in names if name not in _RESOURCE_ONLY]
    return [*reference, *(f"Resource{prefix}{name}" for name in names)]


@kernel(*_ops("Apply", OPTIMIZERS))
def apply_optimizer(node: Construction) -> Kernel:
    """One step of an optimiser: all values are read, checked and computed before any is stored."""
    optimizer = OPTIMIZERS[node.op.removeprefix("Resource").removeprefix("Apply")]
    checks_signs = node.op.endswith("ProximalAdagrad")  # and those with sparse gradients
    formula = optimizer.formula(node.attrs)
    is_whole = [
        index < optimizer.variables or name == optimizer.gradient for index, name in enumerate(optimizer.inputs)
    ]

    def step(variables: Sequence[Variable], others: Sequence[Array]) -> None:
        inputs = [*[variable.read() for variable in variables], *map(np.asarray, others)]
        values, shape = dict(zip(optimizer.inputs, inputs, strict=True)), inputs[0].shape
        if [x.shape for x in inputs] != [shape if whole else () for whole in is_whole]:
            _check_shapes(optimizer, values)
            _check_same(inputs[0], optimizer.gradient, values[optimizer.gradient].shape)
        if checks_signs:
            _check_signs(values)
        for variable, new in zip(variables, formula(values), strict=True):
            variable.value = np.asarray(new, inputs[0].dtype)

    return updating(node, step, count=optimizer.variables, find=initialised_variable_of)


def _check_sparse(var: Array, grad: Array, indices: Array) -> None:
    if indices.ndim != 1:
        raise InvalidArgumentError("indices must be one-dimensional")
    if var.ndim == 0:
        raise InvalidArgumentError("var must be at least 1 dimensional")
    if grad.shape[:1] != indices.shape:
        raise InvalidArgumentError("grad must be the same size as indices in the first dimension.")
    if grad.shape[1:] != var.shape[1:]:
        raise InvalidArgumentError(
            f"var and grad must match in dimension 1: {shape_text(var.shape)} {shape_text(grad.shape)}"
        )
    check_rows(indices, var.shape[0])


def _rounds(indices: Array) -> list[Array]:
    """Positions in `indices`, split so that no round has an index twice; earlier occurrences come in earlier rounds."""
    if len(set(indices.tolist())) == len(indices):
        return [np.arange(len(indices))]
    order = indices.argsort(kind="stable")
    starts = run_starts(indices[order])
    lengths = np.append(starts[1:], indices.size) - starts
    _, occurrence = rows_and_steps(lengths)
    return [np.sort(order[occurrence == k]) for k in range(int(lengths.max(initial=0)))]


@kernel(*_ops("SparseApply", _SPARSE))
def sparse_apply_optimizer(node: Construction) -> Kernel:
    """A step on the rows that the gradient has; a repeated row takes its steps in order."""
    optimizer = OPTIMIZERS[node.op.removeprefix("Resource").removeprefix("SparseApply")]
    formula, checks_signs = optimizer.formula(node.attrs), optimizer in _SIGNED
    names = list(optimizer.inputs)
    names.insert(names.index(optimizer.gradient) + 1, "indices")

    def step(variables: Sequence[Variable], others: Sequence[Array]) -> None:
        stored = [variable.read().copy() for variable in variables]
        values = dict(zip(names, [*stored, *map(np.asarray, others)], strict=True))
        grad, indices = values[optimizer.gradient], values.pop("indices")
        _check_shapes(optimizer, values)
        _check_sparse(values["var"], grad, indices)
        if checks_signs:
            _check_signs(values)
        for rows in _rounds(indices):
            part = values | dict(zip(names, (array[indices[rows]] for array in stored), strict=False))
            part[optimizer.gradient] = grad[rows]
            for array, new in zip(stored, formula(part), strict=True):
                array[indices[rows]] = new
        for variable, array in zip(variables, stored, strict=True):
            variable.value = array

    return updating(node, step, count=optimizer.variables, find=initialised_variable_of)
