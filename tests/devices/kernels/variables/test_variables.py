"""Variables keep what they are assigned, arrays that were read do not change, unassigned variables cannot be read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState, ResourceHandle, Variable, handle_array, handle_of
from partita.errors import FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError, OutOfRangeError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import run, shapes
from tests.devices.kernels.variables.variable_tensors import handle, reference


def test_a_reference_variable_is_one_object_per_name() -> None:
    """Two nodes of one shared name see each other's assignments; a reset forgets them."""
    state = DeviceState()
    attrs = {"shape": (2,), "dtype": DataType.FLOAT, "shared_name": "v"}
    first = run("VariableV2", state=state, name="a", **attrs)
    assert run("VariableV2", state=state, name="b", **attrs) is first
    run("Assign", first, np.array([1, 2], np.float32))
    state.reset()
    assert run("VariableV2", state=state, name="a", **attrs).value is None


def test_variables_of_one_name_are_of_one_type() -> None:
    state = DeviceState()
    run("VariableV2", state=state, dtype=DataType.FLOAT, shape=(), shared_name="v")
    with pytest.raises(InternalError, match="Output 0 of type float_ref does not match declared output type int32_ref"):
        run("VariableV2", state=state, dtype=DataType.INT32, shape=(), shared_name="v")


@pytest.mark.parametrize("op", ["VariableV2", "TemporaryVariable"])
def test_declared_shapes_are_known_and_an_unknown_rank_is_a_scalar(op: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"Shape \[\?,3\] is not fully defined"):
        run(op, dtype=DataType.FLOAT, shape=(None, 3))
    variable = run(op, dtype=DataType.FLOAT, shape=None)
    with pytest.raises(InvalidArgumentError, match=r"lhs shape= \[\] rhs shape= \[1\]"):
        run("Assign", variable, np.ones(1, np.float32))


def test_resource_variables_without_a_name_are_one() -> None:
    state = DeviceState()
    first, second = (run("VarHandleOp", state=state, name=n, dtype=DataType.FLOAT, shape=()) for n in "ab")
    run("AssignVariableOp", first, np.float32(3), state=state)
    assert run("ReadVariableOp", second, state=state, dtype=DataType.FLOAT) == 3


def test_an_unassigned_variable_cannot_be_read() -> None:
    """Both kinds of variables give TensorFlow's messages."""
    with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value v"):
        reference().read()
    assert not run("IsVariableInitialized", reference())
    state = DeviceState()
    unassigned = handle(state)
    assert not run("VarIsInitializedOp", unassigned, state=state)
    with pytest.raises(FailedPreconditionError) as caught:
        run("ReadVariableOp", unassigned, state=state, dtype=DataType.FLOAT)
    assert caught.value.message == (
        "Could not find variable v. This could mean that the variable has been deleted. "
        "In TF1, it can also mean the variable is uninitialized. Debug info: container=localhost, "
        "status error message=Container localhost does not exist. (Could not find resource: localhost/v)"
    )


@given(st.lists(st.sampled_from(["Assign", "AssignAdd", "AssignSub"]), max_size=5))
def test_updates_replace_the_array_that_readers_hold(steps: list[str]) -> None:
    """A value once read never changes, and reference and resource variables go through the same values."""
    state, variable = DeviceState(), reference(np.array([1, 2], np.float32))
    resource = handle(state, np.array([1, 2], np.float32))
    seen = [(variable.read(), variable.read().copy())]
    for number, op in enumerate(steps):
        value = np.full(2, number + 1, np.float32)
        assert run(op, variable, value) is variable
        run({"Assign": "AssignVariableOp"}.get(op, f"{op}VariableOp"), resource, value, state=state)
        seen.append((variable.read(), variable.read().copy()))
        read = run("ReadVariableOp", resource, state=state, dtype=DataType.FLOAT)
        np.testing.assert_array_equal(read, variable.read())
    for held, copy in seen:
        np.testing.assert_array_equal(held, copy)


def test_assignment_keeps_the_shape_unless_told_otherwise() -> None:
    """The declared shape counts before the first value, the value's shape afterwards."""
    variable = reference(shape=(2,))
    with pytest.raises(InvalidArgumentError, match=r"lhs shape= \[2\] rhs shape= \[3\]"):
        run("Assign", variable, np.ones(3, np.float32))
    run("Assign", variable, np.ones(3, np.float32), validate_shape=False)
    assert variable.read().shape == (3,)
    with pytest.raises(InvalidArgumentError, match="Parameters and update must be the same size"):
        run("AssignAdd", variable, np.ones(2, np.float32))


def test_resource_updates_check_shape_and_type() -> None:
    """The messages are TensorFlow's."""
    state = DeviceState()
    variable = handle(state, np.ones(3, np.float32))
    with pytest.raises(
        InvalidArgumentError, match=r"shape \[3\] using a Tensor with shape \[2\], shapes must be equal"
    ):
        run("AssignAddVariableOp", variable, np.ones(2, np.float32), state=state)
    with pytest.raises(InvalidArgumentError, match=r"read variable with wrong dtype\. Expected int32 got float"):
        run("ReadVariableOp", variable, state=state, dtype=DataType.INT32)
    with pytest.raises(InvalidArgumentError, match=r"assign variable with wrong dtype\. Expected float got int32"):
        run("AssignVariableOp", variable, np.array([1], np.int32), state=state)
    with pytest.raises(InvalidArgumentError, match=r"wrong shape. Expected \[3\] got \[2\]"):
        run("AssignVariableOp", variable, np.ones(2, np.float32), state=state, validate_shape=True)


def test_a_destroyed_variable_is_gone() -> None:
    """Destroying it twice is an error only without `ignore_lookup_error`."""
    state = DeviceState()
    variable = handle(state, np.ones(3, np.float32))
    run("DestroyResourceOp", variable, state=state)
    run("DestroyResourceOp", variable, state=state)
    with pytest.raises(NotFoundError):
        run("DestroyResourceOp", variable, state=state, ignore_lookup_error=False)
    with pytest.raises(NotFoundError, match="Resource localhost/v/N10tensorflow3VarE does not exist"):
        run("VariableShape", variable, state=state)


def test_a_handle_of_another_device_is_refused() -> None:
    """Its variable lives in the other device's state."""
    state = DeviceState()
    elsewhere = handle_array(ResourceHandle("/device:CPU:7", "localhost", "v", "T"))
    with pytest.raises(FailedPreconditionError, match="located in device /device:CPU:7 from device"):
        run("ReadVariableOp", elsewhere, state=state, dtype=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match="is not a resource handle"):
        handle_of(np.ones(1))


def test_counting_stops_at_the_limit() -> None:
    """Counting gives the old value; at the limit it fails and nothing changes."""
    variable = Variable("n", DataType.INT32, np.asarray(np.int32(1)))
    assert run("CountUpTo", variable, limit=2) == 1
    with pytest.raises(OutOfRangeError, match="Reached limit of 2"):
        run("CountUpTo", variable, limit=2)
    assert variable.read() == 2


def test_shapes_of_references_are_carried() -> None:
    """A resource's shape is not in its handle's."""
    assert shapes("VariableV2", shape=(2, None), dtype=DataType.FLOAT) == [(2, None)]
    assert shapes("Assign", (2, None), (None, 3)) == [(2, 3)]
    assert shapes("Assign", (2,), (3,), validate_shape=False) == [(3,)]
    assert shapes("VarHandleOp", dtype=DataType.FLOAT, shape=(2,)) == [()]
    assert shapes("ReadVariableOp", (), dtype=DataType.FLOAT) == [None]
    with pytest.raises(InvalidArgumentError, match="Shapes must be equal rank, but are 1 and 2"):
        shapes("AssignAdd", (2,), (2, 3))


def test_one_container_can_be_reset_alone() -> None:
    """The variables of other containers stay."""
    state = DeviceState()
    state.resource(("other", "T", "a"), lambda: 1)
    state.resource(("localhost", "T", "a"), lambda: 2)
    state.reset("other")
    assert list(state.resources) == [("localhost", "T", "a")]
    state.reset("localhost")
    assert not state.resources


def test_a_temporary_variable_is_new_each_time() -> None:
    """It is initialised from the start, and destroying it gives its last value."""
    first, second = (run("TemporaryVariable", shape=(2,), dtype=DataType.FLOAT, var_name="t") for _ in range(2))
    assert run("IsVariableInitialized", first)
    run("Assign", first, np.array([1, 2], np.float32))
    np.testing.assert_array_equal(run("DestroyTemporaryVariable", first, var_name="t"), [1, 2])
    np.testing.assert_array_equal(run("DestroyTemporaryVariable", second, var_name="t"), [0, 0])
    with pytest.raises(NotFoundError, match="no temporary variable 'other'"):
        run("DestroyTemporaryVariable", first, var_name="other")
