"""The kernels of nodes that call functions: calls, conditionals, loops, maps, remote calls.

    c = If(p, x), then: double, else: negate, both short        a kernel: p = True, x = 3.0 -> double's plan runs -> 6.0
    w = While(i), or a branch that sends or is long             a function that starts a deferred node: the outputs come
                                                                later, and others run meanwhile

A node has an ordinary kernel if all functions it may call are short, otherwise a function that starts a deferred node.
The functions get the data inputs of the node, without the predicate of a conditional and the target of a remote call.

A predicate that is a scalar is true if it is a number other than zero, a string other than "", or True. Any other
tensor is true if it has elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.kernels.functions import Values
from ...devices.kernels.registry import Kernel, Start, outputs
from ...devices.pipeline.bodies import ResourceDevices
from ...errors import InvalidArgumentError
from ...graph.dtypes import DataType, base_type
from ...graph.functions.body import instantiate_call
from ...graph.library.calls import called_by, calls_gradient, inputs_before_arguments, is_partitioned_call
from ...graph.ops.record import LOOPS, Calls
from .call_checks import (
    check_arguments,
    check_branch,
    check_call,
    check_condition,
    check_executor_type,
    check_gradient,
    check_loop_body,
    check_map,
    check_mapped,
    check_repeated,
)
from .callee import CalledFunction, Callee, Callees, CallTurn
from .loops.counted import ForKernel
from .loops.looks import Looks
from .map_kernel import MapKernel, promised_by

if TYPE_CHECKING:
    from ...graph import NameAttrList
    from ...graph.ops.properties import NodeProperties
    from .messages import TurnedWork
    from .pacing import Pacer
    from .pending import PendingCall

_ALWAYS_DEFERRED = (*LOOPS, Calls.MAP, Calls.REMOTE)
"""loops and maps may be long, and the device of a remote call is known only at run time"""

CalleeCheck = Callable[["Callee", Sequence[DataType]], None]


def is_deferred_call(node: NodeProperties, functions: Callees, device: str) -> bool:
    """Whether a node that calls functions is a deferred one. Compiles the functions unless they may call themselves."""
    if _is_always_deferred(node, functions):
        return True
    return not all(functions.callee(called).is_short for called in _called_by(node, functions, device))


def next_uncompiled(node: NodeProperties, device: str, functions: Callees) -> CalledFunction | None:
    """The next function that `is_deferred_call` would compile; None if it needs none."""
    if _is_always_deferred(node, functions):
        return None
    for called in _called_by(node, functions, device):
        callee = functions.find_compiled(called)
        if callee is None:
            return called
        if not callee.is_short:
            return None
    return None


def size_of_call(node: NodeProperties, functions: Callees, device: str) -> int:
    """The size of the largest function that a node may call, for a node that is not deferred."""
    callees = map(functions.find_compiled, _called_by(node, functions, device))
    return max(callee.size for callee in callees if callee is not None)


def _is_always_deferred(node: NodeProperties, functions: Callees) -> bool:
    if node.op_def.record.calls in _ALWAYS_DEFERRED:
        return True
    if is_partitioned_call(node) and DataType.RESOURCE in node.input_types and not functions.has_one_device:
        return True  # the devices of the resources are known only at run time
    gradient = calls_gradient(node)
    return any(functions.may_call_itself(f.name, gradient=gradient) for f in called_by(node, functions.library))


def _called_by(node: NodeProperties, functions: Callees, device: str) -> Iterator[CalledFunction]:
    resource_devices = (device,) * node.input_types.count(DataType.RESOURCE) if is_partitioned_call(node) else None
    gradient = calls_gradient(node)
    for function in called_by(node, functions.library):
        yield CalledFunction(function, device, resource_devices, gradient, functions.own_site(function))


def _site(name: str, node: NodeProperties, functions: Callees, site: str, function: NameAttrList) -> str:
    """The site of the calls of a function by a node that is called from `site` itself.

    As in TensorFlow, each node that is a call has generators of its own, while all conditionals, loops and maps at one
    site share those of a function. So does a recursion at any depth, which is compiled once.
    """
    own, gradient = functions.own_site(function), calls_gradient(node)
    if not own or functions.may_call_itself(function.name, gradient=gradient):
        return own
    return f"{site}{name}/" if is_partitioned_call(node) else site + own


def call_kernel(name: str, node: NodeProperties, functions: Callees, device: str, site: str) -> Kernel | Start:
    """The kernel of a node, or what starts it if it is deferred. Raises as `Functions.callee`.

    The node is in a function called from `site`, or in the graph if that is "".
    """
    calls = node.op_def.record.calls
    types = tuple(map(base_type, node.input_types))
    types_of_results = tuple(map(base_type, node.output_types))
    argument_types = types[inputs_before_arguments(calls) :]
    if calls is Calls.FOR:
        argument_types = (DataType.INT32, *argument_types)

    def lazy(function: NameAttrList, check: CalleeCheck) -> _Lazy:
        is_multi_device, is_gradient = is_partitioned_call(node), calls_gradient(node)
        types = argument_types, types_of_results
        own = _site(name, node, functions, site, function)
        given = check_mapped if calls is Calls.MAP else check_arguments
        return _Lazy(functions, function, device, *types, given, check, is_multi_device, is_gradient, own)

    called = called_by(node, functions.library)
    if calls is Calls.FOR:
        once, repeated = (lazy(called[0], check) for check in (check_branch, check_repeated))
        return ForKernel(once, repeated, partial(instantiate_call, functions.library, called[0])).start
    callees = [lazy(function, check) for function, check in zip(called, _checks(node), strict=False)]
    if calls is Calls.WHILE:
        return _While(*callees).start
    if calls is Calls.REMOTE:
        return _remote(callees[0])
    if calls is Calls.MAP:
        return MapKernel(callees[0], len(node.attrs["Targuments"]), promised_by(node)).start
    choose = _Choice(calls, callees)
    if is_deferred_call(node, functions, device):
        return choose.start
    for callee in callees:
        callee.compile_for(device)
    return choose.run


def _checks(node: NodeProperties) -> Iterable[CalleeCheck]:
    """The check of the result types, for each function of a node."""
    calls = node.op_def.record.calls
    if calls is Calls.CALL:
        return (partial(_check_partitioned_call, executor_type=node.attrs["executor_type"].decode()),)
    if calls is Calls.GRADIENT:
        return (check_gradient,)
    if calls is Calls.WHILE:
        return check_condition, check_loop_body
    if calls in (Calls.IF, Calls.CASE):
        return repeat(check_branch)
    return repeat(check_map if calls is Calls.MAP else check_call)


def _check_partitioned_call(callee: Callee, expected_types: Sequence[DataType], *, executor_type: str) -> None:
    """Raises as `check_call` and `check_executor_type`."""
    check_call(callee, expected_types)
    check_executor_type(executor_type, "attr 'executor_type' of a call")


@dataclass(frozen=True, slots=True)
class _Lazy:
    """A function that is compiled and checked at the latest when it is first called.

    The node passes arguments of `argument_types` and expects results of `result_types`, which `check_given` and
    `check` compare. A function that `is_multi_device` is compiled once for each combination of devices of its
    resources.
    """

    functions: Callees
    function: NameAttrList
    device: str
    argument_types: tuple[DataType, ...]
    result_types: tuple[DataType, ...]
    check_given: CalleeCheck
    check: CalleeCheck
    is_multi_device: bool
    is_gradient: bool
    site: str
    _callees: dict[ResourceDevices | None, Callee] = field(init=False, default_factory=dict)

    def __call__(self, arguments: Values) -> Callee:
        """The compiled function for a call with these arguments; raises the errors of `call_checks`."""
        devices = self._resource_devices(arguments)
        callee = self._callees.get(devices)
        if callee is None:
            callee = self._compiled(devices)
            self.check_given(callee, self.argument_types)
            self.check(callee, self.result_types)
            self._callees[devices] = callee
        return callee

    def compile_for(self, device: str) -> None:
        """Compiles the function for resources on `device`: a kernel in a worker thread must not."""
        resources = self.argument_types.count(DataType.RESOURCE)
        self._compiled((device,) * resources if self.is_multi_device else None)

    def _compiled(self, devices: ResourceDevices | None) -> Callee:
        return self.functions.callee(CalledFunction(self.function, self.device, devices, self.is_gradient, self.site))

    def _resource_devices(self, arguments: Values) -> ResourceDevices | None:
        if not self.is_multi_device:
            return None
        if DataType.RESOURCE not in self.argument_types:
            return ()
        return tuple(
            self.functions.resource_device(value, self.device)
            for value, dtype in zip(arguments, self.argument_types, strict=True)
            if dtype is DataType.RESOURCE
        )

    @property
    def is_alone(self) -> bool:
        """Whether the function is alone, as one that runs as a whole on one device."""
        return self._compiled(None).is_alone


def _truth(value: Any) -> bool:
    """Whether a predicate is true."""
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
        """The kernel of a node whose functions are all short."""
        callee, arguments = self._chosen(inputs)
        return outputs(callee.run(*arguments))

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Starts the deferred node."""
        callee, arguments = self._chosen(inputs)
        if callee.is_short:
            call.done(*callee.run(*arguments))
        else:
            callee.start(call, arguments, lambda results: call.done(*results))

    def _chosen(self, inputs: Values) -> tuple[Callee, Values]:
        if self.calls is Calls.IF:
            return self.callees[0 if _truth(inputs[0]) else 1](inputs[1:]), inputs[1:]
        if self.calls is Calls.CASE:
            if np.ndim(inputs[0]):
                raise InvalidArgumentError("branch_index must be scalar")
            index, last = int(inputs[0]), len(self.callees) - 1
            return self.callees[index if 0 <= index <= last else last](inputs[1:]), inputs[1:]
        return self.callees[0](inputs), inputs


@dataclass(frozen=True, slots=True)
class _While:
    """While: calls `body` on its own results as long as `cond` of them is true."""

    cond: _Lazy
    body: _Lazy

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Starts the deferred node."""
        cond = self.cond(inputs)
        if cond.is_alone and self.body.is_alone:
            call.part.actor.continue_work(call, _turns(cond, self.body, inputs, call.part.actor.pacer))
        else:
            _LongWhile(call, cond, self.body).decide(inputs)


def _turns(cond: Callee, body: _Lazy, values: Values, pacer: Pacer) -> TurnedWork:
    """Runs a loop of functions that are alone: iterations that take long, and the first of a long body, in turns."""
    looks = Looks(pacer)
    looks.add(cond.segments)
    iteration, next_look, is_watched = 0, looks.next, looks.is_watched
    while True:
        decided = (yield from cond.run_in_turns(values, pacer)) if is_watched else cond.run(*values)
        if not _truth(decided[0]):
            return values
        callee = body(values)
        if not iteration:
            looks.add(callee.segments)
            is_watched = looks.is_watched or not callee.is_short
        values = (yield from callee.run_in_turns(values, pacer)) if is_watched else callee.run(*values)
        iteration += 1
        if iteration == next_look:
            if looks.look():
                yield None
            next_look, is_watched = looks.next, looks.is_watched


class _LongWhile:
    """A loop with a function that has several devices, or waits: the end of each call starts the next."""

    __slots__ = ("body", "call", "cond", "iteration")

    def __init__(self, call: PendingCall, cond: Callee, body: _Lazy) -> None:
        self.call = call
        self.cond = cond
        self.body = body
        self.iteration = 0

    def decide(self, values: Values) -> None:
        """Calls the condition on these values, then the body or the end of the loop."""

        def decided(results: Values) -> None:
            if not _truth(results[0]):
                self.call.done(*values)
                return
            turn = CallTurn(self.iteration)
            self.iteration += 1
            self.body(values).start(self.call, values, self.decide, turn)

        self.cond.start(self.call, values, decided, CallTurn(self.iteration, is_condition=True))


def _remote(function: _Lazy) -> Start:
    """A remote call: the function is called as from the device that the first input names."""

    def start(call: PendingCall, target: Any, *arguments: Any) -> None:
        if np.size(target) != 1:
            raise InvalidArgumentError(f"the target must be one name of a device, not {np.size(target)}")
        name = target.item() if isinstance(target, np.ndarray) else target
        full = function.functions.device(name.decode(errors="replace"), function.device)
        callee = replace(function, device=full)(arguments)
        callee.start(call, arguments, lambda results: call.done(*results))

    return start
