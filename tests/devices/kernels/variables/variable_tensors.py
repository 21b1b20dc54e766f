"""Variables to try kernels on."""

from __future__ import annotations

import numpy as np

from partita.devices.state import DeviceState, Variable
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run


def reference(value: np.ndarray | None = None, shape: tuple[int, ...] | None = None) -> Variable:
    return Variable("v", DataType.FLOAT, value, shape)


def handle(state: DeviceState, value: np.ndarray | None = None, name: str = "v") -> np.ndarray:
    variable: Array = run("VarHandleOp", state=state, dtype=DataType.FLOAT, shape=None, shared_name=name)
    if value is not None:
        run("AssignVariableOp", variable, value, state=state)
    return variable
