"""Functions when they run: bodies placed, cut and compiled like graphs of their own, and called by the nodes of others.

Flows in: calls and the functions they name, the library of the session's graph. Flows out: a `Callee` per function,
device that calls it, and devices of the resources it is given. Always holds: what has effects in a body runs, whether
its results are used or not; a function that may call itself is compiled when it is first called, one level at a time.

Where the nodes of a body go is TensorFlow's rule, of which there are two. `PartitionedCall` and
`StatefulPartitionedCall` call over several devices: arguments and results are with the caller, but a resource is where
its handle says that it lives, which only the run may know; the placer puts the rest where it asks to be, or must be,
and has the caller's device before all others where it may choose. Every other call (a function used as an op,
conditionals and loops that are not lowered, maps, remote calls, gradients) runs as a whole on one device, whatever its
nodes ask for.

Calls may be nested deeper than Python lets its own calls be, so nothing here recurses along them: bodies are compiled
from the innermost to the outermost (`_Compilation`), and a call that has ended returns by way of a mailbox. Only what
may call itself is limited in depth (`MAX_DEPTH`), as it would not end otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.pipeline import Pipeline
from ...devices.state import ResourceHandle
from ...errors import InvalidArgumentError, PartitaError
from ...graph.columns import SINK_ID
from ...graph.device_name import is_specification, parse_full_name
from ...graph.dtypes import DataType
from ...graph.functions.body import FunctionBody, instantiate_call
from ...graph.gradients import gradient_function
from ...graph.library.calls import calls_functions
from ..plans.compiler import compile_plans
from ..plans.levels import Unfoldable
from ..plans.transfers import is_long
from .call_kernels import call_kernel, is_deferred_call, size_of_call, undecided
from .callee import Called, Callee, Homes, Key
from .interpretation import interpret

if TYPE_CHECKING:
    from ...devices.cluster import Cluster
    from ...devices.kernels.registry import Kernel, Start
    from ...graph import NameAttrList
    from ...graph.graph import Graph
    from ...graph.library.function_library import FunctionLibrary
    from ...graph.ops.properties import NodeProperties
    from ..plans.plan import Plan
    from .device_actor import DeviceActor

_OF_A_CALL = 2  # instructions that a call is worth: so short functions are nested 32 deep at most
_OF_A_LONG_KERNEL = 22  # instructions that a product or a sort is worth: three in a row are worth looking at the clock


@dataclass(frozen=True, slots=True)
class _Compilation:
    """A function under way to a `Callee`: its body placed, whole and cut, and the calls in it, each with its device."""

    called: Called
    body: FunctionBody
    graph: Graph
    parts: Mapping[str, Graph]
    calls: list[tuple[NodeProperties, str]]

    def needed(self, functions: Functions) -> Called | None:
        """A function that has to be compiled first, so that it is known which calls are deferred."""
        while self.calls:
            found = undecided(*self.calls[-1], functions)
            if found is not None:
                return found
            self.calls.pop()
        return None

    def add_caller(self, error: PartitaError) -> None:
        """Notes in the error of a function, compiled for the last of the calls, which node calls it."""
        kind, device = self.calls[-1]
        node = next(node.name for node in self.graph.op_nodes() if node.properties is kind)
        error.located(node=node, op=kind.op, device=device).inside(self.body.name)


class Functions:
    """What a session's nodes can call, compiled as far as it has been asked for: a `plans.binding.CallResolver`."""

    def __init__(self, graph: Graph, cluster: Cluster, actors: Mapping[str, DeviceActor], *, soft: bool) -> None:
        """`graph` has the library; `soft` says whether nodes of functions are placed softly."""
        self.library = graph.functions
        self._cluster = cluster
        self._actors = actors
        self._soft = soft
        self._callees: dict[Key, Callee] = {}

    def may_call_itself(self, name: str, *, gradient: bool = False) -> bool:
        """Whether a function, or the one that computes its gradient, can lead to a call of itself."""
        return self.library.may_call_itself(name, gradient=gradient)

    @property
    def has_one_device(self) -> bool:
        """Whether there is only one place where anything can be."""
        return len(self._actors) == 1

    def is_deferred(self, node: NodeProperties, device: str) -> bool:
        """See `plans.binding.CallResolver`."""
        return is_deferred_call(node, self, device)

    def kernel(self, node: NodeProperties, device: str) -> Kernel | Start:
        """See `plans.binding.CallResolver`."""
        return call_kernel(node, self, device)

    def callee(self, called: Called) -> Callee:
        """The function, compiled. Raises what `instantiate`, `gradient_function`, `place` and `compile_plans` raise."""
        return self.find(called) or self._compiled(called)

    def find(self, called: Called) -> Callee | None:
        """A function that has been compiled, or None."""
        return self._callees.get(called.key)

    def _compiled(self, called: Called) -> Callee:
        """Compiles a function, and before it those that have to be known for that, the innermost first."""
        waiting = [self._compilation(called)]
        while True:
            made, needed = waiting[-1], waiting[-1].needed(self)
            try:
                if needed is not None:
                    waiting.append(self._compilation(needed))
                    continue
                callee = self._callees[made.called.key] = self._finished(made)
            except PartitaError as error:
                for caller in reversed(waiting if needed is not None else waiting[:-1]):
                    caller.add_caller(error)
                raise
            waiting.pop()
            if not waiting:
                return callee

    def home(self, value: Any, default: str) -> str:
        """The device of the resource whose handle a tensor carries; `default` for what lives on no device.

        Raises InvalidArgumentError for a device that the session, or the task, does not have.
        """
        found = value.flat[0] if isinstance(value, np.ndarray) and value.size else value
        if not isinstance(found, ResourceHandle):
            return default
        if found.device not in self._actors:
            raise InvalidArgumentError(
                f"resource {found.name!r} lives on {found.device}, which a function called from {default} cannot "
                f"reach: its nodes are on {list(self._actors)}; inline the call"
            )
        return found.device

    def device(self, name: str) -> str:
        """The full name of a device of the session that fits `name`; InvalidArgumentError when there is none."""
        wanted = parse_full_name(name)
        for full in self._actors:
            if is_specification(wanted, parse_full_name(full)):
                return full
        raise InvalidArgumentError(f"no device {name!r} among {list(self._actors)}")

    def _compilation(self, called: Called) -> _Compilation:
        """A body placed and cut, and the calls in it."""
        body = body_of(self.library, called.function, gradient=called.gradient)
        try:
            pruned = Pipeline(self._cluster, allow_soft_placement=self._soft).prune_body(body)
            _settle(pruned.graph, body, called.device, called.homes)
            placed = pruned.place(default_device=called.device)
            parts = placed.cut().graphs
        except PartitaError as error:
            raise error.inside(body.name) from error.__cause__
        kinds = [(kind, device) for device, part in parts.items() for kind in part.distinct_properties()[0]]
        calls = [(kind, device) for kind, device in kinds if calls_functions(kind, self.library)]
        return _Compilation(called, body, placed.graph, parts, calls)

    def _finished(self, made: _Compilation) -> Callee:
        """A body compiled, of which all that has to be known is."""
        parts, body, called = made.parts, made.body, made.called
        may_call_itself = self.may_call_itself(called.function.name, gradient=called.gradient)
        types = body.argument_types, body.result_types
        try:
            plans = compile_plans([(part, self._actors[name].binder) for name, part in parts.items()], called=True)
        except Unfoldable:
            uncut = interpret(made.graph, {name: actor.binder for name, actor in self._actors.items()})
            return Callee(body.name, (), *types, 0, may_call_itself, (uncut, self._actors[called.device]))
        except PartitaError as error:
            raise error.inside(body.name) from error.__cause__
        work = tuple(zip(plans, [self._actors[name] for name in parts], strict=True))
        return Callee(body.name, work, *types, sum(map(self._size, plans)), may_call_itself)

    def _size(self, plan: Plan) -> int:
        """See `Callee`."""
        size = plan.num_instructions
        for segment in plan.segments:
            for node in segment.origins:
                kind = plan.properties[node]
                if is_long(kind.op_def.record):
                    size += _OF_A_LONG_KERNEL - 1
                elif calls_functions(kind, self.library):
                    size += _OF_A_CALL - 1 + size_of_call(kind, self, plan.device)
        return size


def body_of(library: FunctionLibrary, function: NameAttrList, *, gradient: bool) -> FunctionBody:
    """The body of a function, or of the one that computes its gradient; raises as making either does."""
    return (gradient_function if gradient else instantiate_call)(library, function)


def _settle(graph: Graph, body: FunctionBody, device: str, homes: Homes | None) -> None:
    """Gives the nodes of a pruned body the devices that a call from `device` leaves no choice of."""
    if homes is None:
        requested = graph.requested_device_indices()
        requested[SINK_ID + 1 :] = graph.intern_device(device)
        graph.request_devices(requested)
        return
    assigned, resources = graph.assigned_device_indices(), iter(homes)
    for node in body.arguments:
        home = next(resources, device) if node.output_types[0] is DataType.RESOURCE else device
        assigned[node.id] = graph.intern_device(home)
    for node in body.results:
        if node.input_types[0] is not DataType.RESOURCE:
            assigned[node.id] = graph.intern_device(device)
    graph.assign_devices(assigned)
