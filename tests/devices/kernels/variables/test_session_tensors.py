"""Session tensors can be read in later steps by their handles until they are deleted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.devices.state import DeviceState, handle_of
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
VALUE = np.array([1, 2], np.float32)


def text(value: str) -> Array:
    """A scalar string."""
    result = np.empty((), object)
    result[()] = value.encode()
    return result


def test_a_handle_leads_to_its_tensor_until_that_is_deleted() -> None:
    state = DeviceState(seed=0)
    first, second = (run("GetSessionHandle", VALUE + i, state=state, name="h") for i in range(2))
    assert (first.item(), second.item()) == (f"h;0;{CPU}".encode(), f"h;1;{CPU}".encode())
    assert run("GetSessionTensor", second, state=state, dtype=DataType.FLOAT).tolist() == [2, 3]
    run("DeleteSessionTensor", first, state=state)
    assert len(state.session_tensors) == 1
    of_type: dict[str, Any] = {"dtype": DataType.FLOAT}
    for op, attrs in (("GetSessionTensor", of_type), ("DeleteSessionTensor", {})):
        with pytest.raises(InvalidArgumentError, match=f"The tensor with handle 'h;0;{CPU}' is not in the session"):
            run(op, first, state=state, **attrs)


def test_resource_handles_name_the_tensor_too() -> None:
    state = DeviceState(seed=0)
    handle = handle_of(run("GetSessionHandleV2", VALUE, state=state, name="h"))
    assert (handle.container, handle.type_name, handle.name) == ("TensorHandle", "TensorHandle", f"h;0;{CPU}")
    assert state.session_tensors.get(handle.name) is VALUE


def test_handles_are_strings_and_tensors_of_the_type_asked_for() -> None:
    state = DeviceState(seed=0)
    handle = run("GetSessionHandle", VALUE, state=state)
    with pytest.raises(InvalidArgumentError, match="is of type float32, not int32"):
        run("GetSessionTensor", handle, state=state, dtype=DataType.INT32)
    with pytest.raises(InvalidArgumentError, match="handle must be scalar"):
        run("GetSessionTensor", text("a").reshape(1), state=state, dtype=DataType.INT32)


def test_a_device_forgets_its_own_tensors() -> None:
    state = DeviceState(seed=0)
    run("GetSessionHandle", VALUE, state=state)
    state.session_tensors.add("h", "another", VALUE)
    state.session_tensors.forget(CPU)
    assert len(state.session_tensors) == 1
