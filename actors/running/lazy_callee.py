"""The functions that a node calls, each compiled and checked at the latest when it is first called.

While(x), cond: goes_on, body: step        two; `step` is compiled if `goes_on` has been true
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.state import ResourceHandle
from ...graph.dtypes import DataType, Types, base_type
from ...graph.library.calls import called_by, calls_gradient, inputs_before_arguments, is_partitioned_call
from ...graph.ops.record import Calls
from .call_checks import (
    CalledSignature,
    check_arguments,
    check_branch,
    check_call,
    check_condition,
    check_executor_type,
    check_gradient,
    check_loop_body,
    check_map,
    check_mapped,
)
from .callee import CalledFunction, Callee, Callees

if TYPE_CHECKING:
    from ...devices.kernels.functions import Values
    from ...devices.pipeline.bodies import ResourceDevices
    from ...graph import NameAttrList
    from ...graph.ops.properties import NodeProperties
    from .loops.whole_body import WholeBody

CalleeCheck = Callable[[CalledSignature, Types], None]


class DevicesOfResources:
    """A function from the arguments of a call to the devices of the resources among them, in their order.

    Nearly every call of a node passes the same handles as the last one, so that what they say is read once.
    """

    __slots__ = ("_default", "_functions", "_latest", "_numbers")

    def __init__(self, functions: Callees, default: str, argument_types: Types) -> None:
        """`default` is the device of the caller, where the resources are that no handle names."""
        self._functions = functions
        self._default = default
        self._numbers = [number for number, dtype in enumerate(argument_types) if dtype is DataType.RESOURCE]
        self._latest: tuple[Values, ResourceDevices] = (), ()

    def __call__(self, arguments: Values) -> ResourceDevices:
        """The devices; raises the errors of `Callees.resource_device`."""
        handles = [arguments[number] for number in self._numbers]
        latest, devices = self._latest
        if len(handles) == len(latest) and all(map(is_, handles, latest)):
            return devices
        resource_device = self._functions.resource_device
        devices = tuple([resource_device(handle, self._default) for handle in handles])
        if all(map(_only_names, handles)):
            self._latest = handles, devices
        return devices


def _only_names(handle: Any) -> bool:
    """Whether a tensor says no more than a resource's name; one that carries the resource must not outlive its step."""
    return isinstance(handle, np.ndarray) and handle.size == 1 and isinstance(handle.item(), ResourceHandle)


@dataclass(frozen=True, slots=True)
class LazyCallee:
    """A function that a node calls.

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
    _resource_devices: DevicesOfResources = field(init=False)

    def __post_init__(self) -> None:
        resource_devices = DevicesOfResources(self.functions, self.device, self.argument_types)
        object.__setattr__(self, "_resource_devices", resource_devices)

    def __call__(self, arguments: Values) -> Callee:
        """The compiled function for a call with these arguments; raises the errors of `call_checks`."""
        devices = self._resource_devices(arguments) if self.is_multi_device else None
        callee = self._callees.get(devices)
        if callee is None:
            callee = self.functions.callee(self._called(devices))
            self._check_types(callee)
            self._callees[devices] = callee
        return callee

    def compile_for(self, device: str) -> None:
        """Compiles the function for resources on `device`: a kernel in a worker thread must not."""
        self.functions.callee(self._called(self._all_on(device)))

    def whole_body(self) -> WholeBody | None:
        """The body if it runs as a whole on the caller's device, whatever its arguments are; raises as a first call."""
        functions = self.functions
        if functions.may_call_itself(self.function.name, gradient=self.is_gradient):
            return None
        if self.is_multi_device and DataType.RESOURCE in self.argument_types and not functions.has_one_device:
            return None  # the devices of the resources are known only at run time
        whole = functions.whole_body(self._called(self._all_on(self.device)))
        if whole is not None:
            self._check_types(whole.body)
        return whole

    def _check_types(self, signature: CalledSignature) -> None:
        self.check_given(signature, self.argument_types)
        self.check(signature, self.result_types)

    def _called(self, devices: ResourceDevices | None) -> CalledFunction:
        return CalledFunction(self.function, self.device, devices, self.is_gradient, self.site)

    def _all_on(self, device: str) -> ResourceDevices | None:
        return (device,) * self.argument_types.count(DataType.RESOURCE) if self.is_multi_device else None


def callees_of(
    name: str, node: NodeProperties, functions: Callees, device: str, site: str, checks: Iterable[CalleeCheck] = ()
) -> list[LazyCallee]:
    """The functions that a node of that name calls, which is in a function called from `site` itself.

    `checks` of the result types, one for each, are those of its op unless they are given. With fewer checks than
    functions only the first are wanted.
    """
    calls = node.op_def.record.calls
    types = tuple(map(base_type, node.input_types))[inputs_before_arguments(calls) :]
    types = (DataType.INT32, *types) if calls is Calls.FOR else types
    results = tuple(map(base_type, node.output_types))
    given = check_mapped if calls is Calls.MAP else check_arguments
    is_multi_device, is_gradient = is_partitioned_call(node), calls_gradient(node)

    def lazy(function: NameAttrList, check: CalleeCheck) -> LazyCallee:
        own = _site(name, node, functions, site, function)
        return LazyCallee(functions, function, device, types, results, given, check, is_multi_device, is_gradient, own)

    return [lazy(*pair) for pair in zip(called_by(node, functions.library), checks or _checks(node), strict=False)]


def _site(name: str, node: NodeProperties, functions: Callees, site: str, function: NameAttrList) -> str:
    """The site of the calls of a function by a node that is called from `site` itself.

    As in TensorFlow, each node that is a call has generators of its own, while all conditionals, loops and maps at one
    site share those of a function. So does a recursion at any depth, which is compiled once.
    """
    own, gradient = functions.own_site(function), calls_gradient(node)
    if not own or functions.may_call_itself(function.name, gradient=gradient):
        return own
    return f"{site}{name}/" if is_partitioned_call(node) else site + own


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


def _check_partitioned_call(callee: CalledSignature, expected_types: Types, *, executor_type: str) -> None:
    """Raises as `check_call` and `check_executor_type`."""
    check_call(callee, expected_types)
    check_executor_type(executor_type, "attr 'executor_type' of a call")
