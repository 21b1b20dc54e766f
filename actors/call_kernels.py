"""The kernels of nodes that call functions: calls, conditionals, loops, maps.

Flows in: a node's properties, the functions that its session can call. Flows out: a kernel where all it may call is
short, else what starts a deferred node. Always holds: functions get the node's data inputs, less a conditional's
predicate and a remote call's target; an error inside is located at the node inside.

A predicate is true, if it is a scalar, when it is a number other than zero, a string other than "", or True; if it is
none, when it has elements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices.kernels.registry import Kernel, Start, outputs
from ..errors import InternalError, InvalidArgumentError, PartitaError
from ..graph.dtypes import DataType, Shape, base_type, numpy_dtype
from ..graph.functions.calls import called_function, is_partitioned_call
from ..graph.ops.shapes.dims import fits, shape_text
from .call_checks import check_arguments, check_branch, check_call, check_condition, check_loop_body, check_map

if TYPE_CHECKING:
    from ..graph import NameAttrList
    from ..graph.functions.library import FunctionLibrary
    from ..graph.properties import NodeProperties
    from .calls import Callee, Functions, Homes
    from .deferred import PendingCall

Values = Sequence[Any]  # tensors of any type
_CONDITIONALS = ("If", "StatelessIf")
_CASES = ("Case", "StatelessCase")
_LOOPS = ("While", "StatelessWhile")
_GRADIENT = "SymbolicGradient"
_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "MapDefun", _GRADIENT)
_ALWAYS_DEFERRED = (*_LOOPS, "RemoteCall")  # a loop may be long; which device is called, the run decides

Check = Callable[["Callee", Sequence[DataType]], None]


def calls_functions(node: NodeProperties, library: FunctionLibrary) -> bool:
    """Whether a node calls functions of the library."""
    op = node.op_def.name
    return op in _CONDITIONALS or op in _CASES or op in _LOOPS or op in _CALLS or op in library


def calls_gradient(node: NodeProperties) -> bool:
    """Whether what a node calls is the gradient of the function that it names."""
    return node.op_def.name == _GRADIENT


def is_deferred_call(node: NodeProperties, functions: Functions, device: str) -> bool:
    """Whether a node that calls functions is a deferred one; functions that cannot call themselves are compiled."""
    named, op = called_by(node, functions.library), node.op_def.name
    if op in _ALWAYS_DEFERRED or any(f.name in functions.library and functions.may_call_itself(f.name) for f in named):
        return True
    homes = None
    if is_partitioned_call(node):
        homes = (device,) * node.input_types.count(DataType.RESOURCE)
        if homes and not functions.has_one_device:
            return True
    if op in _CONDITIONALS or op in _CASES:
        return not all(_is_known_to_be_short(functions, f, device) for f in named)
    return not all(functions.callee(f, device, homes, gradient=op == _GRADIENT).is_short for f in named)


def _is_known_to_be_short(functions: Functions, branch: NameAttrList, device: str) -> bool:
    """Whether a branch is short; what is wrong with one that is never taken harms nobody, and is told when it is."""
    try:
        return functions.callee(branch, device).is_short
    except PartitaError:
        return False


def call_kernel(node: NodeProperties, functions: Functions, device: str) -> Kernel | Start:
    """The kernel of a node, or what starts it if it is deferred. Raises as `Functions.callee`."""
    op = node.op_def.name
    types = tuple(map(base_type, node.input_types))
    types_of_results = tuple(map(base_type, node.output_types))
    given = types[1:] if op in (*_CONDITIONALS, *_CASES, "RemoteCall") else types
    callees = [
        _Lazy(functions, function, device, given, types_of_results, check, is_partitioned_call(node), op == _GRADIENT)
        for function, check in zip(called_by(node, functions.library), _checks(op), strict=False)
    ]
    deferred = is_deferred_call(node, functions, device)
    if op in _LOOPS:
        return _While(*callees).start
    if op == "RemoteCall":
        return _remote(callees[0])
    if op == "MapDefun":
        mapped = _Map(callees[0], len(node.attrs["Targuments"]), _promised(node))
        return mapped.start if deferred else mapped.run
    choose = _Choice(op, callees)
    return choose.start if deferred else choose.run


def _checks(op: str) -> Iterable[Check]:
    """How the results of each function of a node are checked."""
    if op in _LOOPS:
        return check_condition, check_loop_body
    if op in (*_CONDITIONALS, *_CASES):
        return repeat(check_branch)
    return repeat(check_map if op == "MapDefun" else check_call)


def called_by(node: NodeProperties, library: FunctionLibrary) -> list[NameAttrList]:
    """The functions that a node which calls functions may call."""
    op = node.op_def.name
    if op in _CONDITIONALS:
        return [node.attrs["then_branch"], node.attrs["else_branch"]]
    if op in _CASES:
        return list(node.attrs["branches"])
    if op in _LOOPS:
        return [node.attrs["cond"], node.attrs["body"]]
    if op in ("RemoteCall", "MapDefun", _GRADIENT):
        return [node.attrs["f"]]
    called = called_function(node, library)
    assert called is not None  # `calls_functions` holds
    return [called]


@dataclass(frozen=True, slots=True)
class _Lazy:
    """A function that is compiled when it is first called, if not before, and then checked against the call.

    `given` are the types of its arguments in the call, `wanted` those of its results, which `check` compares. One that
    `is_multi_device` is compiled anew when its resources live elsewhere than in the calls before.
    """

    functions: Functions
    function: NameAttrList
    device: str
    given: tuple[DataType, ...]
    wanted: tuple[DataType, ...]
    check: Check
    is_multi_device: bool
    is_gradient: bool
    _known: dict[Homes | None, Callee] = field(init=False, default_factory=dict)

    def __call__(self, arguments: Values) -> Callee:
        """The function for a call with these arguments; the errors of `check` if the call does not fit it."""
        homes = self._homes(arguments)
        found = self._known.get(homes)
        if found is None:
            found = self.functions.callee(self.function, self.device, homes, gradient=self.is_gradient)
            check_arguments(found, self.given)
            self.check(found, self.wanted)
            self._known[homes] = found
        return found

    def _homes(self, arguments: Values) -> Homes | None:
        if not self.is_multi_device:
            return None
        if DataType.RESOURCE not in self.given:
            return ()
        return tuple(
            self.functions.home(value, self.device)
            for value, dtype in zip(arguments, self.given, strict=True)
            if dtype is DataType.RESOURCE
        )

    @property
    def is_short(self) -> bool:
        """Whether a function that runs as a whole on one device is short."""
        return self.functions.callee(self.function, self.device, gradient=self.is_gradient).is_short


def _truth(value: Any) -> bool:
    """See the module."""
    if np.ndim(value):
        return bool(np.size(value))
    scalar = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
    return bool(scalar)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Calls one of several functions, chosen by the first input, or the only one."""

    op: str
    callees: Sequence[_Lazy]

    def run(self, *inputs: Any) -> Any:
        """The kernel, where all functions are short."""
        callee, arguments = self._chosen(inputs)
        return outputs(callee.run(*arguments))

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Begins the call."""
        callee, arguments = self._chosen(inputs)
        if callee.is_short:
            call.done(*callee.run(*arguments))
        else:
            callee.start(call, arguments, lambda results: call.done(*results))

    def _chosen(self, inputs: Values) -> tuple[Callee, Values]:
        if self.op in _CONDITIONALS:
            return self.callees[0 if _truth(inputs[0]) else 1](inputs[1:]), inputs[1:]
        if self.op in _CASES:
            index, last = int(inputs[0]), len(self.callees) - 1
            return self.callees[index if 0 <= index <= last else last](inputs[1:]), inputs[1:]
        return self.callees[0](inputs), inputs


@dataclass(frozen=True, slots=True)
class _While:
    """Calls `body` with its own results for as long as `cond` of them is true."""

    cond: _Lazy
    body: _Lazy

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Begins the loop."""
        cond = self.cond(inputs)
        if cond.is_short and self.body.is_short:
            call.part.actor.go_on(call, _turns(cond, self.body, inputs, call.part.actor.deadline))
        else:
            _LongWhile(call, cond, self.body).decide(inputs)


def _turns(cond: Callee, body: _Lazy, values: Values, deadline: Callable[[], float]) -> Generator[None, None, Values]:
    """Runs the loop, one call after the other; yields when it is time for others."""
    end = deadline()
    while _truth(cond.run(*values)[0]):
        values = body(values).run(*values)
        if perf_counter() > end:
            yield
            end = deadline()
    return values


class _LongWhile:
    """A loop whose functions take several turns: each goes on where the one before has ended."""

    __slots__ = ("body", "call", "cond", "count")

    def __init__(self, call: PendingCall, cond: Callee, body: _Lazy) -> None:
        self.call = call
        self.cond = cond
        self.body = body
        self.count = 0

    def decide(self, values: Values) -> None:
        """Asks whether to go on with these values."""

        def decided(results: Values) -> None:
            if not _truth(results[0]):
                self.call.done(*values)
                return
            self.count += 1
            self.body(values).start(self.call, values, self.decide, f":{self.count}b")

        self.cond.start(self.call, values, decided, f":{self.count}c")


@dataclass(frozen=True, slots=True)
class _Map:
    """Calls a function with each slice, along axis 0, of the first `num_arguments` inputs and with the others whole.

    `promised` are shape and type of what a call gives for each output.
    """

    callee: _Lazy
    num_arguments: int
    promised: Sequence[tuple[Shape, DataType]]

    def run(self, *inputs: Any) -> Any:
        """The kernel, where the function is short."""
        callee = self.callee(inputs)
        return outputs(self._stacked([callee.run(*arguments) for arguments in self._slices(inputs)]))

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Begins the calls of all slices."""
        callee, slices = self.callee(inputs), self._slices(inputs)
        found: list[Values | None] = [None] * len(slices)
        if not slices:
            call.done(*self._stacked([]))

        def keep(number: int, results: Values) -> None:
            found[number] = results
            if None not in found:
                call.done(*self._stacked([values for values in found if values is not None]))

        for number, arguments in enumerate(slices):
            callee.start(call, arguments, lambda results, number=number: keep(number, results), f":{number}")  # type: ignore[misc]  # the default only binds the number

    def _slices(self, inputs: Values) -> list[Values]:
        mapped, captured = inputs[: self.num_arguments], inputs[self.num_arguments :]
        sizes = {np.shape(value)[0] if np.ndim(value) else -1 for value in mapped}
        if len(sizes) != 1 or -1 in sizes:
            raise InvalidArgumentError("All inputs must have the same dimension 0.")
        return [[*(value[row] for value in mapped), *captured] for row in range(sizes.pop())]

    def _stacked(self, rows: Sequence[Values]) -> list[Any]:
        if rows:
            return [self._output(shape, [row[k] for row in rows]) for k, (shape, _) in enumerate(self.promised)]
        for number, (shape, _) in enumerate(self.promised):
            if shape is None or None in shape:
                raise InternalError(f"Missing {number}-th output: there is no row, and its shape is not fully known")
        return [np.empty((0, *(shape or ())), numpy_dtype(dtype)) for shape, dtype in self.promised]

    def _output(self, promised: Shape, rows: list[Any]) -> Any:
        for row in rows:
            found = np.shape(row)
            if not fits(found, promised):
                expected, actual = shape_text(promised), shape_text(found)
                raise InvalidArgumentError(
                    f"Mismatch in function retval shape, {actual}, and expected output shape, {expected}."
                )
        return np.stack([np.asarray(row) for row in rows])


def _promised(node: NodeProperties) -> list[tuple[Shape, DataType]]:
    shapes, types = node.attrs["output_shapes"], node.output_types
    if len(shapes) != len(types):
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as `output_types` ({len(shapes)} vs. {len(types)})"
        )
    return list(zip(shapes, types, strict=True))


def _remote(function: _Lazy) -> Start:
    """Calls a function from the device that the first input names."""

    def start(call: PendingCall, target: Any, *arguments: Any) -> None:
        name = target.item() if isinstance(target, np.ndarray) else target
        callee = replace(function, device=function.functions.device(name.decode()))(arguments)
        callee.start(call, arguments, lambda results: call.done(*results))

    return start
