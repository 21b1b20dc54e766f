"""The kernels of nodes that call functions: calls, conditionals, loops, maps, remote calls.

    c = If(p, x), then: double, else: negate, both short        a kernel: p = True, x = 3.0 -> double's plan runs -> 6.0
    w = While(i), or a branch that sends or is long             a function that starts a deferred node: the outputs come
                                                                later, and others run meanwhile

A node has an ordinary kernel if all functions it may call are short, otherwise a function that starts a deferred node.
The functions get the data inputs of the node, without the predicate of a conditional and the target of a remote call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.kernels.functions import Values
from ...devices.kernels.registry import Kernel, Start, outputs
from ...errors import InvalidArgumentError
from ...graph.dtypes import DataType
from ...graph.functions.body import instantiate_call
from ...graph.library.calls import called_by, calls_gradient, is_partitioned_call
from ...graph.ops.record import LOOPS, Calls
from .call_checks import check_branch, check_repeated
from .callee import CalledFunction, Callee, Callees, CallTurn
from .lazy_callee import LazyCallee, callees_of
from .loops.counted import ForKernel
from .loops.local import run_local_loop
from .loops.taken_in import loop_of
from .map_kernel import MapKernel, promised_by
from .predicates import CHOICES, chosen, truth

if TYPE_CHECKING:
    from ...graph.ops.properties import NodeProperties
    from .pending import PendingCall

_ALWAYS_DEFERRED = (*LOOPS, Calls.MAP, Calls.REMOTE)
"""loops and maps may be long, and the device of a remote call is known only at run time"""


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


def call_kernel(name: str, node: NodeProperties, functions: Callees, device: str, site: str) -> Kernel | Start:
    """The kernel of a node, or what starts it if it is deferred. Raises as `Functions.callee`.

    The node is in a function called from `site`, or in the graph if that is "".
    """
    calls = node.op_def.record.calls
    callees_for = partial(callees_of, name, node, functions, device, site)
    if calls is Calls.FOR:
        (once,), (repeated,) = (callees_for(checks=(check,)) for check in (check_branch, check_repeated))
        return ForKernel(once, repeated, partial(instantiate_call, functions.library, once.function)).start
    callees = callees_for()
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


@dataclass(frozen=True, slots=True)
class _Choice:
    """Calls one of several functions, chosen by the first input, or the only one."""

    calls: Calls | None
    callees: Sequence[LazyCallee]

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
        if self.calls in CHOICES:
            return self.callees[chosen(self.calls, len(self.callees), inputs[0])](inputs[1:]), inputs[1:]
        return self.callees[0](inputs), inputs


class _While:
    """While: calls `body` on its own results as long as `cond` of them is true, or runs both as one loop."""

    __slots__ = ("_body", "_cond", "_loop")

    def __init__(self, cond: LazyCallee, body: LazyCallee) -> None:
        self._cond = cond
        self._body = body
        self._loop = cache(partial(loop_of, cond, body))

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Starts the deferred node."""
        loop = self._loop()
        if loop is None:
            cond = self._cond(inputs)
            self._body.compile_for(self._body.device)  # one that does not exist fails a loop without iterations too
            _LongWhile(call, cond, self._body).decide(inputs)
        else:
            actor = call.part.actor
            actor.continue_work(call, run_local_loop(loop, inputs, actor.pacer, None))


class _LongWhile:
    """A loop with a function that has several devices, or waits: the end of each call starts the next."""

    __slots__ = ("body", "call", "cond", "iteration")

    def __init__(self, call: PendingCall, cond: Callee, body: LazyCallee) -> None:
        self.call = call
        self.cond = cond
        self.body = body
        self.iteration = 0

    def decide(self, values: Values) -> None:
        """Calls the condition on these values, then the body or the end of the loop."""

        def decided(results: Values) -> None:
            if not truth(results[0]):
                self.call.done(*values)
                return
            turn = CallTurn(self.iteration)
            self.iteration += 1
            self.body(values).start(self.call, values, self.decide, turn)

        self.cond.start(self.call, values, decided, CallTurn(self.iteration, is_condition=True))


def _remote(function: LazyCallee) -> Start:
    """A remote call: the function is called as from the device that the first input names."""

    def start(call: PendingCall, target: Any, *arguments: Any) -> None:
        if np.size(target) != 1:
            raise InvalidArgumentError(f"the target must be one name of a device, not {np.size(target)}")
        name = target.item() if isinstance(target, np.ndarray) else target
        full = function.functions.device(name.decode(errors="replace"), function.device)
        callee = replace(function, device=full)(arguments)
        callee.start(call, arguments, lambda results: call.done(*results))

    return start
