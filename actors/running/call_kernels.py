"""The kernels of nodes that call functions: calls, conditionals, loops, maps.

Flows in: a node's properties, the functions that its session can call. Flows out: a kernel where all it may call is
short, else what starts a deferred node. Always holds: functions get the node's data inputs, less a conditional's
predicate and a remote call's target; an error inside is located at the node inside.

A predicate is true, if it is a scalar, when it is a number other than zero, a string other than "", or True; if it is
none, when it has elements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.kernels.registry import Kernel, Start, outputs
from ...graph.dtypes import DataType, base_type
from ...graph.library.calls import called_by, calls_gradient, is_partitioned_call
from ...graph.ops.record import Calls
from .call_checks import check_arguments, check_branch, check_call, check_condition, check_loop_body, check_map
from .callee import Called, Callee, Callees, Homes, Values
from .map_kernel import MapKernel, promised_by

if TYPE_CHECKING:
    from ...graph import NameAttrList
    from ...graph.ops.properties import NodeProperties
    from .pending import PendingCall

_ALWAYS_DEFERRED = (Calls.WHILE, Calls.MAP, Calls.REMOTE)
"""loops and maps may be long; which device a remote call goes to, the run decides"""

Check = Callable[["Callee", Sequence[DataType]], None]


def is_deferred_call(node: NodeProperties, functions: Callees, device: str) -> bool:
    """Whether a node that calls functions is a deferred one; functions that cannot call themselves are compiled."""
    if _is_always_deferred(node, functions):
        return True
    return not all(functions.callee(called).is_short for called in _called_by(node, functions, device))


def undecided(node: NodeProperties, device: str, functions: Callees) -> Called | None:
    """A function that `is_deferred_call` would compile, None when it has compiled all it needs to see."""
    if _is_always_deferred(node, functions):
        return None
    for called in _called_by(node, functions, device):
        found = functions.find(called)
        if found is None:
            return called
        if not found.is_short:
            return None
    return None


def size_of_call(node: NodeProperties, functions: Callees, device: str) -> int:
    """How many instructions a node that is not deferred runs at most, in the functions it may call."""
    known = map(functions.find, _called_by(node, functions, device))
    return max(callee.size for callee in known if callee is not None)


def _is_always_deferred(node: NodeProperties, functions: Callees) -> bool:
    if node.op_def.record.calls in _ALWAYS_DEFERRED:
        return True
    if is_partitioned_call(node) and DataType.RESOURCE in node.input_types and not functions.has_one_device:
        return True  # where the resources live, the run decides
    gradient = calls_gradient(node)
    return any(functions.may_call_itself(f.name, gradient=gradient) for f in called_by(node, functions.library))


def _called_by(node: NodeProperties, functions: Callees, device: str) -> Iterator[Called]:
    homes = (device,) * node.input_types.count(DataType.RESOURCE) if is_partitioned_call(node) else None
    gradient = calls_gradient(node)
    return (Called(function, device, homes, gradient) for function in called_by(node, functions.library))


def call_kernel(node: NodeProperties, functions: Callees, device: str) -> Kernel | Start:
    """The kernel of a node, or what starts it if it is deferred. Raises as `Functions.callee`."""
    calls = node.op_def.record.calls
    types = tuple(map(base_type, node.input_types))
    types_of_results = tuple(map(base_type, node.output_types))
    given = types[1:] if calls in (Calls.IF, Calls.CASE, Calls.REMOTE) else types
    callees = [
        _Lazy(
            functions, function, device, given, types_of_results, check, is_partitioned_call(node), calls_gradient(node)
        )
        for function, check in zip(called_by(node, functions.library), _checks(calls), strict=False)
    ]
    if calls is Calls.WHILE:
        return _While(*callees).start
    if calls is Calls.REMOTE:
        return _remote(callees[0])
    if calls is Calls.MAP:
        return MapKernel(callees[0], len(node.attrs["Targuments"]), promised_by(node)).start
    choose = _Choice(calls, callees)
    return choose.start if is_deferred_call(node, functions, device) else choose.run


def _checks(calls: Calls | None) -> Iterable[Check]:
    """How the results of each function of a node are checked."""
    if calls is Calls.WHILE:
        return check_condition, check_loop_body
    if calls in (Calls.IF, Calls.CASE):
        return repeat(check_branch)
    return repeat(check_map if calls is Calls.MAP else check_call)


@dataclass(frozen=True, slots=True)
class _Lazy:
    """A function that is compiled when it is first called, if not before, and then checked against the call.

    `given` are the types of its arguments in the call, `wanted` those of its results, which `check` compares. One that
    `is_multi_device` is compiled anew when its resources live elsewhere than in the calls before.
    """

    functions: Callees
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
            found = self.functions.callee(Called(self.function, self.device, homes, self.is_gradient))
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
        return self.functions.callee(Called(self.function, self.device, None, self.is_gradient)).is_short


def _truth(value: Any) -> bool:
    """See the module."""
    if np.ndim(value):
        return bool(np.size(value))
    scalar = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
    return bool(scalar)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Calls one of several functions, chosen by the first input, or the only one."""

    calls: Calls | None
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
        if self.calls is Calls.IF:
            return self.callees[0 if _truth(inputs[0]) else 1](inputs[1:]), inputs[1:]
        if self.calls is Calls.CASE:
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


def _remote(function: _Lazy) -> Start:
    """Calls a function from the device that the first input names."""

    def start(call: PendingCall, target: Any, *arguments: Any) -> None:
        name = target.item() if isinstance(target, np.ndarray) else target
        callee = replace(function, device=function.functions.device(name.decode()))(arguments)
        callee.start(call, arguments, lambda results: call.done(*results))

    return start
