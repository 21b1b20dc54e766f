"""Checks the outputs of kernels that were registered from outside of this package.

A node must return as many outputs as it declares. Each must be an array or a numpy scalar of exactly the declared type,
and of a shape that the op's shape function, or `_output_shapes`, does not rule out. Otherwise the node fails with
InternalError. `check_received` checks messages whose sender was not compiled together with the receiver.

Our own kernels are tested instead, so that steps pay nothing for this: `Binder.kernel` wraps only other kernels, when a
plan is compiled. Plans, loops, functions, the interpreter and constant folding all get their kernels there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.kernels.registry import Call, Kernel, Start
from ...devices.state import ResourceHandle, Variable
from ...errors import InternalError, InvalidArgumentError, PartitaError
from ...graph.analysis.shape_functions import ShapeContext, lookup
from ...graph.dtypes import DataType, base_type, dtype_name, from_numpy, is_ref, make_ref, numpy_dtype

if TYPE_CHECKING:
    from ...graph.dtypes import Array, Shape
    from ...graph.ops.properties import NodeProperties

_ELEMENTS = {DataType.STRING: bytes, DataType.RESOURCE: ResourceHandle}
_ADVICE = "return an array or a numpy scalar of exactly that type"


def checked_kernel(kernel: Kernel, node: NodeProperties) -> Kernel:
    """The kernel, raising InternalError for outputs that are not what `node` declares."""
    check, types = _Check(node), node.output_types

    def run(*inputs: Any) -> Any:
        result = kernel(*inputs)
        if len(types) == 1:
            check((result,), inputs)
        elif types:
            check(_several(result, len(types)), inputs)
        elif result is not None and not (isinstance(result, tuple) and not result):
            raise InternalError(f"What it returns is {_named(result)}, but it has no outputs; return None")
        return result

    return run


def checked_start(start: Start, node: NodeProperties) -> Start:
    """`start`, with a call that fails with InternalError for outputs that are not what `node` declares."""
    check = _Check(node)

    def begin(call: Call, *inputs: Any) -> None:
        start(_CheckedCall(call, lambda outputs: check(outputs, inputs)), *inputs)

    return begin


class _CheckedCall:
    """A `Call` that checks its outputs; everything else is the call's own, whatever members it has."""

    def __init__(self, call: Call, check: Callable[[Sequence[Any]], None]) -> None:
        self._call = call
        self._check = check

    def __getattr__(self, name: str) -> Any:  # Any: by member
        return getattr(self._call, name)

    def done(self, *outputs: Any) -> None:  # Any: tensors of any type
        """Passes the outputs on if they are right, else the error."""
        try:
            self._check(outputs)
        except InternalError as error:
            self._call.fail(error)
        else:
            self._call.done(*outputs)


class _Check:
    """Checks the outputs of one node."""

    def __init__(self, node: NodeProperties) -> None:
        self._types = node.output_types
        self._shapes = _Shapes(node)

    def __call__(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Raises InternalError unless all outputs are what the node declares, and fit its inputs."""
        if len(outputs) != len(self._types):
            raise _wrong_number(len(outputs), len(self._types))
        for number, (value, dtype) in enumerate(zip(outputs, self._types, strict=True)):
            check_type(number, value, dtype)
        shapes = self._shapes.of(inputs)
        for number, (value, shape) in enumerate(zip(outputs, shapes, strict=False)):
            if not _fits(_shape_of(value), shape):
                raise InternalError(f"Output {number} has shape {_shape_of(value)} where the op gives {shape}")


def _several(result: Any, count: int) -> Sequence[Any]:
    if not isinstance(result, tuple | list):
        raise InternalError(f"What it returns for its {count} outputs is {_named(result)}; return a tuple of {count}")
    return result


def _wrong_number(given: int, declared: int) -> InternalError:
    missing = f"Missing {given}-th output: " if given < declared else ""
    return InternalError(f"{missing}{given} outputs are given where {declared} are declared")


def check_type(number: int, value: Any, dtype: DataType) -> None:  # Any: a kernel may return anything
    """Raises InternalError unless output `number` is a tensor of a type, or, for a reference, a variable of it."""
    if is_ref(dtype):
        if not isinstance(value, Variable) or value.dtype != base_type(dtype):
            raise InternalError(
                f"Output {number} is {_named(value)}, which does not match declared output type {dtype_name(dtype)}; "
                "return the variable itself"
            )
        return
    if type(value) is not np.ndarray and not isinstance(value, np.generic):
        raise InternalError(
            f"Output {number} is {_named(value)}, no tensor of the declared output type {dtype_name(dtype)}; {_ADVICE}"
        )
    if value.dtype != numpy_dtype(dtype):
        raise InternalError(
            f"Output {number} of type {_type_name(value.dtype)} does not match declared output type "
            f"{dtype_name(dtype)}; {_ADVICE}"
        )
    element = _ELEMENTS.get(base_type(dtype))
    if element is not None and not all(isinstance(item, element) for item in value.flat):
        other = next(item for item in value.flat if not isinstance(item, element))
        raise InternalError(
            f"Output {number} has an element that is {_named(other)}; a {dtype_name(dtype)} tensor is an array of "
            f"objects of class {element.__name__}"
        )


def check_received(value: Any, dtype: DataType) -> None:  # Any: a message may hold anything
    """Raises InternalError unless a value that was sent is a tensor of a type, or a variable with such a tensor."""
    base = base_type(dtype)
    check_type(0, value, make_ref(base) if isinstance(value, Variable) else base)


def _named(value: object) -> str:
    """What kind of thing a value is, for an error."""
    if isinstance(value, Variable):
        return f"a variable of type {dtype_name(make_ref(value.dtype))}"
    return "None" if value is None else f"of class {type(value).__name__}"


def _type_name(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "SUO" or not dtype.isnative:
        return str(dtype)
    try:
        return dtype_name(from_numpy(dtype))
    except InvalidArgumentError:
        return str(dtype)


def _shape_of(value: Any) -> Shape:
    if isinstance(value, Variable):
        value = value.value
    return value.shape if isinstance(value, np.ndarray | np.generic) else None


def _fits(shape: Shape, known: Shape) -> bool:
    """Whether a shape is one of those that `known` allows."""
    if shape is None or known is None:
        return True
    return len(shape) == len(known) and all(size in (own, None) for own, size in zip(shape, known, strict=True))


class _Shapes:
    """The known shapes of a node's outputs, by the op's shape function, else by the attr `_output_shapes`."""

    def __init__(self, node: NodeProperties) -> None:
        self._node = node
        self._function = lookup(node.op)
        written = node.attrs.get("_output_shapes", ())
        is_list = isinstance(written, tuple | list) and len(written) == len(node.output_types)
        self._written: Sequence[Shape] = written if is_list else ()
        self._last: tuple[tuple[Shape, ...], Sequence[Shape]] | None = None

    def of(self, inputs: Sequence[Any]) -> Sequence[Shape]:
        """One shape per output, or none at all if nothing is known."""
        if self._function is None:
            return self._written
        input_shapes = tuple(map(_shape_of, inputs))
        if self._last is not None and self._last[0] == input_shapes:
            return self._last[1]
        values, node = _Values(inputs), self._node
        try:
            shapes = self._function(
                ShapeContext(
                    node.op,
                    node.attrs,
                    input_shapes,
                    input_types=node.input_types,
                    output_types=node.output_types,
                    constants=values,
                )
            )
        except PartitaError:
            return self._written  # the kernel accepts inputs that the shape function refuses
        if not values.asked:
            self._last = input_shapes, shapes
        return shapes


class _Values(Mapping[int, "Array"]):
    """The values of a kernel's inputs for a shape function; `asked` says whether it has looked at one."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._inputs = inputs
        self.asked = False

    def __getitem__(self, index: int) -> Array:
        self.asked = True
        if not 0 <= index < len(self._inputs):
            raise KeyError(index)
        value = self._inputs[index]
        return np.asarray(value.read() if isinstance(value, Variable) else value)

    def __iter__(self) -> Iterator[int]:
        self.asked = True
        return iter(range(len(self._inputs)))

    def __len__(self) -> int:
        self.asked = True
        return len(self._inputs)
