"""Shape functions of optimiser steps.

Variable, slots and a dense gradient have one shape, hyperparameters are scalars. A reference op gives the variable's
shape, a resource op has no output.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge, shape_fn
from ...dtypes import Shape
from ..variables.variables_shapes import check_scalar, same_rows

# op -> its inputs: v a variable or slot, s a scalar, g the gradient, i the row numbers of a sparse gradient
_DENSE = {
    "GradientDescent": "vsg",
    "Momentum": "vvsgs",
    "KerasMomentum": "vvsgs",
    "Adam": "vvvssssssg",
    "AdamWithAmsgrad": "vvvvssssssg",
    "AdaMax": "vvvsssssg",
    "Adagrad": "vvsg",
    "AdagradV2": "vvssg",
    "AdagradDA": "vvvgssss",
    "Adadelta": "vvvsssg",
    "RMSProp": "vvvssssg",
    "CenteredRMSProp": "vvvvssssg",
    "Ftrl": "vvvgssss",
    "FtrlV2": "vvvgsssss",
    "ProximalGradientDescent": "vsssg",
    "ProximalAdagrad": "vvsssg",
    "AddSign": "vvssssg",
    "PowerSign": "vvssssg",
}


def _merged(c: ShapeContext, letters: str, kinds: str) -> Shape:
    """The merged shape of the inputs whose letter is in `kinds`; inputs marked `s` are checked to be scalars."""
    shape: Shape = None
    for letter, shape_of_input in zip(letters, c.inputs, strict=True):
        if letter in kinds:
            shape = merge(shape, shape_of_input)
        elif letter == "s":
            check_scalar(shape_of_input)
    return shape


@shape_fn(*(f"Apply{name}" for name in _DENSE if name not in ("KerasMomentum", "AdamWithAmsgrad")))
def apply_dense(c: ShapeContext) -> Sequence[Shape]:
    """The variable's shape."""
    return (_merged(c, _DENSE[c.op.removeprefix("Apply")], "vg"),)


@shape_fn(*(f"ResourceApply{name}" for name in _DENSE))
def resource_apply_dense(c: ShapeContext) -> Sequence[Shape]:
    """No output."""
    _merged(c, _DENSE[c.op.removeprefix("ResourceApply")], "")
    return ()


_SPARSE_NAMES = (
    "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "CenteredRMSProp", "Ftrl", "FtrlV2", "KerasMomentum", "Momentum",
    "ProximalAdagrad", "ProximalGradientDescent", "RMSProp",
)  # fmt: skip
_SPARSE = {name: _DENSE[name].replace("g", "gi") for name in _SPARSE_NAMES}


def _check_rows(c: ShapeContext, letters: str) -> None:
    where = letters.index("g")
    same_rows(c.inputs[where + 1], c.inputs[where])


@shape_fn(*(f"SparseApply{name}" for name in _SPARSE if name != "KerasMomentum"))
def apply_sparse(c: ShapeContext) -> Sequence[Shape]:
    """The variable's shape."""
    letters = _SPARSE[c.op.removeprefix("SparseApply")]
    _check_rows(c, letters)
    return (_merged(c, letters, "v"),)


@shape_fn(*(f"ResourceSparseApply{name}" for name in _SPARSE))
def resource_apply_sparse(c: ShapeContext) -> Sequence[Shape]:
    """No output."""
    letters = _SPARSE[c.op.removeprefix("ResourceSparseApply")]
    _check_rows(c, letters)
    _merged(c, letters, "")
    return ()
