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

A short function that needs nobody else runs as one instruction of its caller. Any other is a deferred node: its parts
run on the actors of their devices, their messages go by keys of the call's own frame.

    caller:  launch --> Part on device 0 <--messages--> Part on device 1        (all started at once)
                            `---------- all ended: results ---------'--> arrival
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices.placement import place
from ..devices.state import ResourceHandle
from ..errors import InvalidArgumentError, PartitaError, ResourceExhaustedError
from ..graph.columns import SINK_ID
from ..graph.device_name import is_specification, parse_full_name
from ..graph.dtypes import DataType
from ..graph.functions.body import FunctionBody, instantiate_call
from ..graph.functions.checks import check_input_types
from ..graph.gradients import gradient_function
from ..graph.partition import PartitionOptions, name_counter, split_graph
from ..graph.passes.lower_functional import lower_functional
from ..graph.subgraph import prune_for_reverse_reachability
from ..graph.validate import check_kinds
from .compiler import compile_plans
from .executor import fresh_slots, run_chunk
from .instructions import DEAD
from .interpretation import Interpretation, interpret
from .interpreted_part import InterpretedPart
from .levels import Unfoldable
from .step import Part, frame_id, send_in
from .transfers import check_keys

if TYPE_CHECKING:
    from ..devices.cluster import Cluster
    from ..graph import NameAttrList
    from ..graph.graph import Graph
    from .deferred import PendingCall
    from .device_actor import DeviceActor
    from .plan import Plan

MAX_DEPTH = 500  # calls inside calls, through functions that may call themselves
_AT_ONCE = 64  # instructions of a function that its caller runs as one

Values = Sequence[Any]  # tensors of any type
Done = Callable[[Values], None]
Homes = tuple[str, ...]
"""full names of the devices of the resources among the arguments of a call"""


@dataclass(frozen=True, slots=True)
class Callee:
    """A function, compiled for calls from one device."""

    name: str
    work: tuple[tuple[Plan, DeviceActor], ...]
    argument_types: tuple[DataType, ...]
    result_types: tuple[DataType, ...]
    interpreted: tuple[Interpretation, DeviceActor] | None = None
    """in place of `work`, where only the interpreter can run a loop in the body"""

    @property
    def num_results(self) -> int:
        """How many tensors a call gives."""
        return len(self.result_types)

    @property
    def is_short(self) -> bool:
        """Whether a call runs as one instruction."""
        if self.interpreted is not None:
            return False
        if not self.work:
            return True
        plan = self.work[0][0]
        alone = len(self.work) == 1 and not plan.arrivals and not plan.deferred
        return alone and plan.num_instructions <= _AT_ONCE

    def run(self, *arguments: Any) -> list[Any]:
        """Calls a short function with arguments that fit (`check`)."""
        found: list[Any] = [DEAD] * self.num_results
        for plan, _ in self.work:
            slots = fresh_slots(plan, arguments)
            for segment in plan.segments:
                for number in range(len(segment.chunks)):
                    try:
                        run_chunk(plan, segment, segment.chunks, number, slots)
                    except PartitaError as error:
                        raise error.inside(self.name) from error.__cause__
            for result in plan.results:
                found[result.index] = slots[result.slot]
        return self.alive(found)

    def start(self, call: PendingCall, arguments: Values, done: Done, turn: str = "") -> None:
        """Calls the function for a deferred node; `done` gets the results. `turn` tells calls by one node apart."""
        caller = call.part
        if caller.depth >= MAX_DEPTH:
            raise ResourceExhaustedError(
                f"function {self.name!r} is called {MAX_DEPTH} calls deep; let its recursion end earlier"
            )
        frame = f"{frame_id(f'{caller.frame};{self.name};{call.number}{turn}')}:0"
        send = partial(send_in, call.part.step.rendezvous.send, frame)
        ended = _Gathering(self, call, done)
        if self.interpreted is not None:
            graph, actor = self.interpreted
            InterpretedPart(caller.step, graph, actor, arguments, ended, call=call, function=self.name).start(frame)
        elif not self.work:
            done([])
        for plan, actor in self.work:
            part = Part(caller.step, plan, actor, ended, caller.depth + 1, call, self.name)
            part.start(fresh_slots(plan, arguments, send), frame)

    def alive(self, results: list[Any]) -> list[Any]:
        """The results of a call; InvalidArgumentError if one is dead."""
        for index, value in enumerate(results):
            if value is DEAD:
                raise InvalidArgumentError(f"Retval[{index}] does not have value: function {self.name!r}")
        return results


class _Gathering:
    """Waits for all parts of a call, and hands over what they have computed."""

    __slots__ = ("_call", "_callee", "_done", "_found", "_left")

    def __init__(self, callee: Callee, call: PendingCall, done: Done) -> None:
        self._callee = callee
        self._call = call
        self._done = done
        self._found: list[Any] = [DEAD] * callee.num_results
        self._left = len(callee.work) or 1

    def __call__(self, part: Part | InterpretedPart) -> None:
        if isinstance(part, InterpretedPart):
            self._found = [part.result(index) for index in range(self._callee.num_results)]
        else:
            for result in part.plan.results:
                self._found[result.index] = part.slots[result.slot]
        self._left -= 1
        if self._left:
            return
        try:
            self._done(self._callee.alive(self._found))
        except PartitaError as error:
            self._call.fail(error)


class Functions:
    """What a session's nodes can call, compiled as far as it has been asked for."""

    def __init__(self, graph: Graph, cluster: Cluster, actors: Mapping[str, DeviceActor], *, soft: bool) -> None:
        """`graph` has the library; `soft` says whether nodes of functions are placed softly."""
        self.library = graph.functions
        self._cluster = cluster
        self._actors = actors
        self._soft = soft
        self._callees: dict[tuple[bytes, str, bool, Homes | None], Callee] = {}
        self._recursive: dict[str, bool] = {}

    def may_call_itself(self, name: str) -> bool:
        """Whether a function can lead to a call of itself."""
        found = self._recursive.get(name)
        if found is None:
            found = self._recursive[name] = name in self.library.closure(self.library.needs(name))
        return found

    @property
    def has_one_device(self) -> bool:
        """Whether there is only one place where anything can be."""
        return len(self._actors) == 1

    def callee(
        self, function: NameAttrList, device: str, homes: Homes | None = None, *, gradient: bool = False
    ) -> Callee:
        """The function, or the one that computes its gradient, compiled for calls from a device.

        `homes` are the devices of the resources among its arguments, in their order; without, the function runs as a
        whole on `device`. Raises what `instantiate`, `gradient_function`, `place` and `compile_plans` raise.
        """
        key = function.SerializeToString(deterministic=True), device, gradient, homes
        found = self._callees.get(key)
        if found is None:
            body = (gradient_function if gradient else instantiate_call)(self.library, function)
            try:
                found = self._callees[key] = self._compile(body, device, homes)
            except PartitaError as error:
                raise error.inside(body.name) from error.__cause__
        return found

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

    def _compile(self, body: FunctionBody, device: str, homes: Homes | None) -> Callee:
        graph = runnable_body(body, device, homes)
        check_kinds(graph)
        check_keys(graph)
        check_input_types(graph)
        place(graph, self._cluster, allow_soft_placement=self._soft, default_device=device)
        try:
            return Callee(body.name, self._plans(graph), body.argument_types, body.result_types)
        except Unfoldable:
            uncut = interpret(graph, {name: actor.binder for name, actor in self._actors.items()})
            return Callee(body.name, (), body.argument_types, body.result_types, (uncut, self._actors[device]))

    def _plans(self, graph: Graph) -> tuple[tuple[Plan, DeviceActor], ...]:
        parts = split_graph(graph, PartitionOptions(new_name=name_counter(), get_incarnation=self._cluster.incarnation))
        work = [(part, self._actors[name].binder) for name, part in parts.items()]
        plans = compile_plans(work, called=True)
        return tuple(zip(plans, [self._actors[name] for name in parts], strict=True))


def runnable_body(body: FunctionBody, device: str, homes: Homes | None) -> Graph:
    """The part of a body that a call runs, conditionals and loops lowered; what is settled has its device."""
    graph = lower_functional(body.graph)
    if graph is body.graph:
        graph = graph.clone()
    names = [node.name for node in (*body.results, *body.control_results)]
    wanted = [node for name in names if (node := graph.find_node(name)) is not None]
    wanted += [node for node in graph.op_nodes() if node.properties.op_def.is_stateful]
    prune_for_reverse_reachability(graph, wanted)
    graph.fix_source_and_sink_edges()
    if homes is None:
        requested = graph.requested_device_indices()
        requested[SINK_ID + 1 :] = graph.intern_device(device)
        graph.request_devices(requested)
        return graph
    assigned, resources = graph.assigned_device_indices(), iter(homes)
    for node in body.arguments:
        home = next(resources, device) if node.output_types[0] is DataType.RESOURCE else device
        assigned[node.id] = graph.intern_device(home)
    for node in body.results:
        if node.input_types[0] is not DataType.RESOURCE:
            assigned[node.id] = graph.intern_device(device)
    graph.assign_devices(assigned)
    return graph
