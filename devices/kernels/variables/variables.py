"""Variables: making them, reading them, assigning to them; reference variables and resource variables.

An update replaces the variable's array; arrays that were read before do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, OutOfRangeError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, Shape, base_type, dtype_name, is_ref, numpy_dtype
from ...state import (
    DEFAULT_CONTAINER,
    VARIABLE_TYPE,
    ResourceHandle,
    ResourceKey,
    Variable,
    handle_array,
    handle_of,
    reference_key,
)
from ..arrays.slicing import empty_of
from ..registry import Construction, Kernel, kernel

VariableOf = Callable[[Array], Variable]
FindVariable = Callable[[Construction], VariableOf]
Update = Callable[[Sequence[Variable], Sequence[Array]], None]


@kernel("VariableV2", "Variable")
def reference_variable(node: Construction) -> Kernel:
    """The reference variable of this container and name, which may not be initialised yet."""
    name = node.attrs["shared_name"].decode() or node.name
    container = node.attrs["container"].decode()
    dtype = base_type(node.output_types[0])
    state, shape = node.state, node.attrs["shape"]
    _check_known(shape)
    resources, key = state.resources, reference_key(container, name)

    def find() -> Variable:
        variable = resources.get(key)
        if isinstance(variable, Variable) and variable.dtype == dtype:
            return variable
        return state.variable(container, name, dtype, shape)

    return find


def _check_known(shape: Shape) -> None:
    """InvalidArgumentError for a declared shape that leaves sizes open."""
    if None in (shape or ()):
        raise InvalidArgumentError(f"Shape {shape_text(shape)} is not fully defined")


@kernel("TemporaryVariable")
def temporary_variable(node: Construction) -> Kernel:
    """A new variable of zeros that only the reference keeps."""
    name, shape = node.attrs["var_name"].decode() or node.name, node.attrs["shape"]
    dtype = base_type(node.output_types[0])

    _check_known(shape)
    return lambda: Variable(name, dtype, empty_of(shape or (), numpy_dtype(dtype)), shape)


@kernel("DestroyTemporaryVariable")
def destroy_temporary_variable(node: Construction) -> Kernel:
    """The last value of a temporary variable."""
    name = node.attrs["var_name"].decode()

    def take(variable: Variable) -> Array:
        if variable.name != name:
            raise NotFoundError(f"there is no temporary variable {name!r} here, but {variable.name!r}")
        return variable.read()

    return take


@kernel("IsVariableInitialized")
def is_variable_initialized(node: Construction) -> Kernel:
    """Whether the reference variable has been assigned to."""
    return lambda variable: np.bool_(variable.value is not None)


def _shape(variable: Variable) -> Shape:
    """The shape that an assignment must keep: the value's, else the declared one, where an unknown rank is a scalar."""
    return (variable.shape or ()) if variable.value is None else tuple(variable.value.shape)


@kernel("Assign")
def assign(node: Construction) -> Kernel:
    """Replaces the variable's value; its shape too where validate_shape is off."""
    validate = bool(node.attrs["validate_shape"])

    def store(variable: Variable, value: Array) -> Variable:
        if validate:
            expected = _shape(variable)
            if expected != value.shape:
                raise InvalidArgumentError(
                    "Assign requires shapes of both tensors to match. "
                    f"lhs shape= {shape_text(expected)} rhs shape= {shape_text(value.shape)}"
                )
        variable.value = np.asarray(value)
        return variable

    return store


def _add(a: Array, b: Array) -> Array:
    return np.asarray(a + b)


def _subtract(a: Array, b: Array) -> Array:
    return np.asarray(a - b)


@kernel("AssignAdd", "AssignSub")
def assign_update(node: Construction) -> Kernel:
    """Adds to, or subtracts from, an initialised reference variable."""
    combine = _add if node.op == "AssignAdd" else _subtract

    def update(variable: Variable, value: Array) -> Variable:
        old = variable.read()
        if old.shape != value.shape:
            raise InvalidArgumentError("Parameters and update must be the same size")
        variable.value = combine(old, value)
        return variable

    return update


@kernel("CountUpTo")
def count_up_to(node: Construction) -> Kernel:
    """Gives the variable's value and adds one; OutOfRangeError once it has reached the limit."""
    limit = int(node.attrs["limit"])

    def count(variable: Variable) -> Array:
        old = variable.read()
        variable.value = _counted(old, limit)
        return old

    return count


def _counted(old: Array, limit: int) -> Array:
    if old.ndim:
        raise InvalidArgumentError(f"input is not a scalar: {shape_text(old.shape)}")
    if old >= limit:
        raise OutOfRangeError(f"Reached limit of {limit}")
    return np.asarray(old + 1, old.dtype)


@kernel("VarHandleOp")
def var_handle(node: Construction) -> Kernel:
    """The handle of the resource variable of this container and name; always the same array.

    All nodes of a container that give no name share one variable, as in TensorFlow.
    """
    name = node.attrs["shared_name"].decode()
    container = node.attrs["container"].decode() or DEFAULT_CONTAINER
    handle = handle_array(ResourceHandle(node.device, container, name, VARIABLE_TYPE))
    return lambda: handle


def variable_of(node: Construction) -> VariableOf:
    """A function from a handle to its variable on the node's device; it raises NotFoundError if there is none."""
    state, device = node.state, node.device
    resources = state.resources
    # Most nodes get the same handle in every step: what it says is read once.
    latest: tuple[Array, ResourceKey] | None = None

    def find(value: Array) -> Variable:
        nonlocal latest
        if latest is not None and value is latest[0] and type(resource := resources.get(latest[1])) is Variable:
            return resource
        handle = handle_of(value)
        if handle.device == device and isinstance(resource := resources.get(handle.key), Variable):
            latest = value, handle.key
            return resource
        if handle.device != device and handle.device and device:
            raise InvalidArgumentError(
                f"Trying to access resource {handle.name} located in device {handle.device} from device {device}"
            )
        resource = state.resource(handle.key)
        if not isinstance(resource, Variable):
            raise InvalidArgumentError(f"resource {handle.name!r} is a {type(resource).__name__}, not a variable")
        return resource

    return find


def initialised_variable_of(node: Construction) -> VariableOf:
    """As `variable_of`, but what is no variable here is a FailedPreconditionError: it was deleted or never assigned to,
    or is on another device."""
    find = variable_of(node)

    def initialised(value: Array) -> Variable:
        try:
            return find(value)
        except (NotFoundError, InvalidArgumentError) as error:
            handle = handle_of(value)
            raise FailedPreconditionError(
                f"Could not find variable {handle.name}. This could mean that the variable has been deleted. "
                "In TF1, it can also mean the variable is uninitialized. "
                f"Debug info: container={handle.container}, status error message={error.message}"
            ) from None

    return initialised


def updating(node: Construction, update: Update, *, count: int = 1, find: FindVariable | None = None) -> Kernel:
    """The kernel of an op that updates the variables of its first `count` inputs, references or handles.

    `update` gets the variables and the other inputs. The op's output is the first reference; ops on handles have none.
    `find` makes the function that looks handles up.
    """
    if is_ref(node.input_types[0]):

        def update_references(*inputs: Any) -> Variable:
            update(inputs[:count], inputs[count:])
            first: Variable = inputs[0]
            return first

        return update_references
    variable = (find or variable_of)(node)

    def update_resources(*inputs: Array) -> None:
        update([variable(handle) for handle in inputs[:count]], inputs[count:])

    return update_resources


@kernel("VarIsInitializedOp")
def var_is_initialized(node: Construction) -> Kernel:
    """Whether the resource variable exists, which it does from its first assignment on."""
    resources = node.state.resources
    return lambda handle: np.bool_(handle_of(handle).key in resources)


@kernel("ReadVariableOp")
def read_variable(node: Construction) -> Kernel:
    """The resource variable's value; FailedPreconditionError before its first assignment."""
    find, dtype = initialised_variable_of(node), node.output_types[0]

    def read(handle: Array) -> Array:
        variable = find(handle)
        if variable.dtype != dtype:
            raise InvalidArgumentError(
                "Trying to read variable with wrong dtype. "
                f"Expected {dtype_name(dtype)} got {dtype_name(variable.dtype)}"
            )
        value = variable.value
        return variable.read() if value is None else value

    return read


@kernel("DisableCopyOnRead")
def disable_copy_on_read(node: Construction) -> Kernel:
    """Nothing: values are never copied on read here."""
    return lambda handle: None


@kernel("AssignVariableOp")
def assign_variable(node: Construction) -> Kernel:
    """Assigns to the resource variable, which is made on first use."""
    state, dtype = node.state, DataType(node.attrs["dtype"])
    validate = bool(node.attrs["validate_shape"])

    def store(handle: Array, value: Array) -> None:
        resource_handle = handle_of(handle)
        variable = state.resource(resource_handle.key, lambda: Variable(resource_handle.name, dtype))
        if variable.dtype != dtype:
            raise InvalidArgumentError(
                "Trying to assign variable with wrong dtype. "
                f"Expected {dtype_name(variable.dtype)} got {dtype_name(dtype)}"
            )
        if validate and variable.value is not None and variable.value.shape != value.shape:
            raise InvalidArgumentError(
                "Trying to assign to variable with tensor with wrong shape. "
                f"Expected {shape_text(variable.value.shape)} got {shape_text(value.shape)}"
            )
        variable.value = np.asarray(value)

    return store


@kernel("AssignAddVariableOp", "AssignSubVariableOp")
def assign_variable_update(node: Construction) -> Kernel:
    """Adds to, or subtracts from, an initialised resource variable."""
    find, combine = variable_of(node), _add if "Add" in node.op else _subtract

    def update(handle: Array, value: Array) -> None:
        variable = find(handle)
        old = variable.read()
        if old.shape != value.shape:
            raise InvalidArgumentError(
                f"Cannot update variable with shape {shape_text(old.shape)} "
                f"using a Tensor with shape {shape_text(value.shape)}, shapes must be equal."
            )
        variable.value = combine(old, value)

    return update


@kernel("ResourceCountUpTo")
def resource_count_up_to(node: Construction) -> Kernel:
    """CountUpTo for a resource variable."""
    find, limit = variable_of(node), int(node.attrs["limit"])

    def count(handle: Array) -> Array:
        variable = find(handle)
        old = variable.read()
        variable.value = _counted(old, limit)
        return old

    return count


@kernel("VariableShape")
def variable_shape(node: Construction) -> Kernel:
    """The shape of the resource variable's value."""
    find, dtype = variable_of(node), numpy_dtype(node.output_types[0])
    return lambda handle: np.array(find(handle).read().shape, dtype)


@kernel("DestroyResourceOp")
def destroy_resource(node: Construction) -> Kernel:
    """Removes the resource; NotFoundError if it is missing, unless the attr says to ignore that."""
    resources, ignore = node.state.resources, bool(node.attrs["ignore_lookup_error"])

    def destroy(value: Array) -> None:
        handle = handle_of(value)
        if resources.pop(handle.key, None) is None and not ignore:
            raise NotFoundError(f"Resource {handle.container}/{handle.name}/<unknown> does not exist.")

    return destroy
