"""The functions that the nodes of a session's graph call: their bodies are placed, cut and compiled like graphs.

    scale(x) = 2 * x, called by node "s" on CPU:0        CalledFunction(scale, "CPU:0") goes in
    body, placed and cut                                 CPU:0: x -> Mul(x, 2) -> result
    compiled                                             a Callee with one plan of one instruction, on CPU:0's actor
    kernel of "s"                                        its size is below 64: runs the plan at once, 3.0 -> 6.0

There is a `Callee` per function, calling device, and devices of its resource arguments. All nodes with effects in a
body run, whether its results are used or not. A function that may call itself is compiled when it is first
called. `devices/pipeline/bodies.py` says to which devices the nodes of a body go.

Calls may be nested deeper than Python's recursion limit. So nothing here recurses: a stack of `Compilation` compiles
the innermost body first, and a call returns by a message. Only functions that may call themselves have a limit of
depth (`MAX_DEPTH`), since such a recursion may never end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices import pipeline
from ...devices.state import ResourceHandle
from ...errors import InternalError, InvalidArgumentError, PartitaError
from ...graph.device_name import canonicalize
from ...graph.functions.canonical import canonical_name
from ...graph.library.calls import calls_functions
from ...graph.ops.device_kinds import device_kind
from .. import running
from ..plans.binding import Binder
from ..plans.compiler import compile_plans
from ..plans.levels import Unfoldable
from ..plans.transfers import is_long
from .from_kernels.scopes import Scopes

if TYPE_CHECKING:
    from ...devices.cluster import Cluster
    from ...devices.kernels.functions import Function, Scope
    from ...devices.kernels.registry import Call, Kernel, Start
    from ...graph import NameAttrList
    from ...graph.functions.body import FunctionBody
    from ...graph.graph import Graph
    from ...graph.library.function_library import FunctionLibrary
    from ...graph.ops.properties import NodeProperties
    from ..plans.compiler import BoundGraph
    from ..plans.plan import Plan
    from .callee import CalledFunction, Callee, CalleeKey
    from .device_actor import DeviceActor
    from .from_kernels.calls import KernelCallees
    from .interpretation import Interpretation
    from .loops.whole_body import WholeBody

_CALL_SIZE = 2  # instructions that a call counts as: with it short functions nest at most 32 deep
_LONG_KERNEL_SIZE = 22  # instructions that a matrix product or a sort counts as: with three no function is short


@dataclass(frozen=True, slots=True)
class Compilation:
    """A function that is being compiled: its body placed, its partitions, and the calls in it with their devices."""

    called: CalledFunction
    body: FunctionBody
    graph: Graph
    parts: Mapping[str, Graph]
    calls: list[tuple[NodeProperties, str]]

    def needed(self, functions: Functions) -> CalledFunction | None:
        """A function that must be compiled first, because `size` and deferred calls of this one depend on it."""
        while self.calls:
            callee = running.next_uncompiled(*self.calls[-1], functions)
            if callee is not None:
                return callee
            self.calls.pop()
        return None

    def add_caller(self, error: PartitaError) -> None:
        """Adds the node that calls to the error of the function that was compiled for it, the last of `calls`."""
        kind, device = self.calls[-1]
        node = next(node.name for node in self.graph.op_nodes() if node.properties is kind)
        error.located(node=node, op=kind.op, device=device).inside(self.body.name)


class Functions:
    """The functions of a session's library and those already compiled: a `plans.binding.CallResolver`."""

    def __init__(
        self,
        library: FunctionLibrary,
        cluster: Cluster,
        actors: Mapping[str, DeviceActor],
        *,
        soft: bool,
        every_node: bool = False,
    ) -> None:
        """`soft` is soft placement for the nodes of functions, `every_node` is for traces, as in `compile_plans`."""
        self.library = library
        self._cluster = cluster
        self._actors = actors
        self._soft = soft
        self._every_node = every_node
        self._binders = {name: actor.binder.calling(self) for name, actor in actors.items()}
        self._devices = frozenset(cluster.names)
        self._callees: dict[CalleeKey, Callee] = {}
        self.too_deep: set[str] = set()
        self._whole_bodies: dict[CalleeKey, WholeBody | None] = {}
        self._hosts: dict[str, str] = {}
        self._scopes = Scopes(library, self._with_own_generators)
        self._kernel_callees: dict[tuple[str, bytes], KernelCallees] = {}

    @cached_property
    def traced(self) -> Functions:
        """The same functions, compiled for traced steps."""
        return self._again(every_node=True)

    def _again(self, *, every_node: bool = False) -> Functions:
        """The same functions, compiled apart."""
        return Functions(self.library, self._cluster, self._actors, soft=self._soft, every_node=every_node)

    def _with_own_generators(self) -> Functions:
        """The same functions, compiled apart, with random generators of their own on every device."""
        functions = self._again()
        for name, binder in functions._binders.items():
            functions._binders[name] = Binder(name, binder.state.with_own_generators()).calling(functions)
        return functions

    @cached_property
    def _untraced(self) -> Functions:
        """The same functions, compiled for steps without traces and without simulated time."""
        return self._again()

    def for_kernels(self) -> Functions:
        """The same functions, as deferred kernels call them."""
        return self._untraced if self._every_node else self

    def function_for(self, call: Call, function: NameAttrList, scope: Scope) -> Function:
        """A function that a deferred kernel calls on behalf of `call`."""
        assert isinstance(call, running.PendingCall)  # actors make no other calls
        functions, device = self, self._host_of(call.place.device)
        if self._scopes.matter_to(function.name):
            functions = self._scopes.of(scope, self._binders[device].state.seed)
        return running.KernelFunction(partial(functions._for_kernels_on, device, function), call)

    def restart_generators(self, seed: int) -> None:
        """Begins the random generators anew; only for functions that have their own."""
        for binder in self._binders.values():
            binder.state.restart_generators(seed)

    def _host_of(self, device: str) -> str:
        """The device that computes for another one on its host: functions of datasets run there."""
        host = self._hosts.get(device)
        if host is None:
            host = device
            if device_kind(self._cluster.find(device).type).own_memory:
                from ...devices.timing.bodies.places import hosts_of  # loads the timing, without which most sessions do

                names = self._cluster.names
                host = names[int(hosts_of(self._cluster)[names.index(device)])]
            self._hosts[device] = host
        return host

    def _for_kernels_on(self, device: str, function: NameAttrList) -> KernelCallees:
        key = device, function.SerializeToString(deterministic=True)
        callees = self._kernel_callees.get(key)
        if callees is None:
            callees = self._kernel_callees[key] = running.KernelCallees(self, function, device)
        return callees

    def may_call_itself(self, name: str, *, gradient: bool = False) -> bool:
        """Whether a function, or its gradient function, can lead to a call of itself."""
        return self.library.may_call_itself(name, gradient=gradient)

    @property
    def has_one_device(self) -> bool:
        """Whether all nodes and resources are on the same device."""
        return len(self._devices) == 1

    def is_deferred(self, node: NodeProperties, device: str) -> bool:
        """Whether a node that calls functions is a deferred one."""
        return running.is_deferred_call(node, self, device)

    def kernel(self, name: str, node: NodeProperties, device: str, site: str) -> Kernel | Start:
        """The kernel of a node that calls functions, or what starts it if it is deferred."""
        return running.call_kernel(name, node, self, device, site)

    def own_site(self, function: NameAttrList) -> str:
        """The site of calls that share the random generators of a function; "" for a function without any."""
        return f"{canonical_name(function.name, function.attr)}/" if self._scopes.matter_to(function.name) else ""

    def callee(self, called: CalledFunction) -> Callee:
        """The compiled function. Raises the errors of instantiation, gradients, placement and compilation."""
        return self.find_compiled(called) or self._compiled_last(called)

    def find_compiled(self, called: CalledFunction) -> Callee | None:
        """The function if it has been compiled, else None."""
        return self._callees.get(called.key)

    def whole_body(self, called: CalledFunction) -> WholeBody | None:
        """The body of a function that runs as a whole on its caller's device; None for others, and in traces.

        Raises the errors of instantiation, gradients and placement. A trace shows the calls, so that they must be some.
        """
        if self._every_node:
            return None
        if called.key not in self._whole_bodies:
            placed = self._compilation(called)
            binder = self._binders_at(called)[called.device]
            self._whole_bodies[called.key] = (
                running.whole_body(placed.body, placed.parts[called.device], binder)
                if [*placed.parts] == [called.device] and not _sends(placed.parts[called.device])
                else None
            )
        return self._whole_bodies[called.key]

    def _compiled_last(self, called: CalledFunction) -> Callee:
        """Compiles a function after those it needs, with a stack in place of recursion."""
        waiting = [self._compilation(called)]
        while True:
            innermost, needed = waiting[-1], waiting[-1].needed(self)
            try:
                if needed is not None:
                    waiting.append(self._compilation(needed))
                    continue
                callee = self._callees[innermost.called.key] = self._finished(innermost)
            except PartitaError as error:
                # A function that could not be placed is not on the stack, so that all on it have called; one that could
                # not be compiled is its top, and those below have called.
                for caller in reversed(waiting if needed is not None else waiting[:-1]):
                    caller.add_caller(error)
                raise
            waiting.pop()
            if not waiting:
                return callee

    def resource_device(self, value: Any, default: str) -> str:
        """The device of the resource that a handle refers to; `default` if the tensor is no such handle.

        Raises InvalidArgumentError for a device that the session, or the task, does not have.
        """
        handle = value.item(0) if isinstance(value, np.ndarray) and value.size else value
        if not isinstance(handle, ResourceHandle):
            return default
        if handle.device not in self._devices:
            raise InvalidArgumentError(
                f"resource {handle.name!r} lives on {handle.device}, which a function called from {default} cannot "
                f"reach: its nodes are on {self._cluster.names}; inline the call"
            )
        return handle.device

    def device(self, name: str, base: str) -> str:
        """The full name of a device, open parts as in `base`.

        Raises InvalidArgumentError for what is no name, InternalError for a device that the session does not have.
        """
        full = canonicalize(name, base)
        if full not in self._devices:
            raise InternalError(
                f"Currently don't support instantiating functions on device: {full}; "
                f"it is none of {self._cluster.names}"
            )
        return full

    def _compilation(self, called: CalledFunction) -> Compilation:
        """Places and cuts a body and lists the calls in it."""
        body = pipeline.body_of(self.library, called.function, gradient=called.gradient)
        settings = pipeline.Pipeline(self._cluster, allow_soft_placement=self._soft)
        placed = pipeline.placed_body(settings, body, called.device, called.resource_devices)
        try:
            parts = placed.cut().graphs
        except PartitaError as error:
            raise error.inside(body.name) from error.__cause__
        kinds = [(kind, device) for device, part in parts.items() for kind in part.distinct_properties()[0]]
        calls = [(kind, device) for kind, device in kinds if calls_functions(kind, self.library)]
        return Compilation(called, body, placed.graph, parts, calls)

    def _finished(self, compilation: Compilation) -> Callee:
        """Compiles a body whose callees are known."""
        parts, binders = compilation.parts, self._binders_at(compilation.called)
        bound = [(part, binders[name]) for name, part in parts.items()]
        try:
            plans = self._plans(bound)
        except Unfoldable:
            return self._made(compilation, (), 0, running.interpret(compilation.graph, binders))
        except PartitaError as error:
            raise error.inside(compilation.body.name) from error.__cause__
        return self._made(compilation, plans, sum(map(self._size, plans)))

    def _plans(self, bound: Sequence[BoundGraph]) -> Sequence[Plan]:
        """The plans of all partitions of a body."""
        return compile_plans(bound, every_node=self._every_node, called=True)

    def _made(
        self, compilation: Compilation, plans: Sequence[Plan], size: int, uncut: Interpretation | None = None
    ) -> Callee:
        """The function with a plan for each of its partitions, or with its body `uncut`."""
        body, called = compilation.body, compilation.called
        kind = running.TracedCallee if self._every_node else running.Callee
        work = tuple((plan, self._actors[plan.device]) for plan in plans)
        interpreted = None if uncut is None else (uncut, self._actors[called.device])
        may_call_itself = self.may_call_itself(called.function.name, gradient=called.gradient)
        return kind(body.name, work, body.argument_types, body.result_types, size, may_call_itself, interpreted)

    def _binders_at(self, called: CalledFunction) -> dict[str, Binder]:
        """By device: what makes kernels with the generators of a call and the private resources of its function."""
        owner = canonical_name(called.function.name, called.function.attr)
        return {name: binder.within(called.site, owner) for name, binder in self._binders.items()}

    def _size(self, plan: Plan) -> int:
        """The number of instructions of a plan as `Callee.size` counts them."""
        size = plan.num_instructions
        for segment in plan.segments:
            for node in segment.origins:
                kind = plan.properties[node]
                if is_long(kind.op_def.record):
                    size += _LONG_KERNEL_SIZE - 1
                elif calls_functions(kind, self.library):
                    size += _CALL_SIZE - 1 + running.size_of_call(kind, self, plan.device)
        return size


def _sends(part: Graph) -> bool:
    """Whether a partition sends something, which one with memory of its own may do to itself."""
    return any(kind.op_def.record.is_transfer for kind in part.distinct_properties()[0])
