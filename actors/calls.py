"""Functions when they run: bodies placed, cut and compiled like graphs of their own, and called by the nodes of others.

Flows in: calls and the functions they name, the library of the session's graph. Flows out: a `Callee` per function and
device that calls it. Always holds: a body's nodes are where they ask to be, and else with the caller; what has effects
in it runs, whether its results are used or not; a function that may call itself is compiled when it is first called,
one level at a time.

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

from ..devices.placement import place
from ..errors import InvalidArgumentError, PartitaError, ResourceExhaustedError
from ..graph.device_name import is_specification, parse_full_name
from ..graph.dtypes import DataType, dtype_name
from ..graph.functions.body import FunctionBody, instantiate_call
from ..graph.gradients import gradient_function
from ..graph.partition import PartitionOptions, name_counter, split_graph
from ..graph.passes.lower_functional import lower_functional
from ..graph.subgraph import prune_for_reverse_reachability
from ..graph.validate import check_kinds
from .compiler import compile_plans
from .executor import fresh_slots, run_chunk
from .instructions import DEAD
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


@dataclass(frozen=True, slots=True)
class Callee:
    """A function, compiled for calls from one device."""

    name: str
    work: tuple[tuple[Plan, DeviceActor], ...]
    argument_types: tuple[DataType, ...]
    result_types: tuple[DataType, ...]

    @property
    def num_results(self) -> int:
        """How many tensors a call gives."""
        return len(self.result_types)

    def check(self, given: tuple[DataType, ...], wanted: int) -> None:
        """Raises InvalidArgumentError unless it takes arguments of these types and gives so many results."""
        if given == self.argument_types and wanted == len(self.result_types):
            return
        if len(given) != len(self.argument_types):
            raise InvalidArgumentError(
                f"Expects {len(self.argument_types)} arguments, but {len(given)} is provided: function {self.name!r}"
            )
        for index, (actual, expected) in enumerate(zip(given, self.argument_types, strict=True)):
            if actual != expected:
                raise InvalidArgumentError(
                    f"Type mismatch: actual {dtype_name(actual)} vs. expect {dtype_name(expected)}: "
                    f"Expects arg[{index}] to be {dtype_name(expected)} but {dtype_name(actual)} is provided"
                )
        raise InvalidArgumentError(
            f"function {self.name!r} gives {len(self.result_types)} results where {wanted} are wanted; "
            "let the node that calls it have as many outputs"
        )

    @property
    def is_short(self) -> bool:
        """Whether a call runs as one instruction."""
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
                    run_chunk(plan, segment, segment.chunks, number, slots)
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
        if not self.work:
            done([])
        for plan, actor in self.work:
            part = Part(caller.step, plan, actor, ended, caller.depth + 1)
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
        self._left = len(callee.work)

    def __call__(self, part: Part) -> None:
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
        self._callees: dict[tuple[bytes, str, bool], Callee] = {}
        self._recursive: dict[str, bool] = {}

    def may_call_itself(self, name: str) -> bool:
        """Whether a function can lead to a call of itself."""
        found = self._recursive.get(name)
        if found is None:
            found = self._recursive[name] = name in self.library.closure(self.library.needs(name))
        return found

    def callee(self, function: NameAttrList, device: str, *, gradient: bool = False) -> Callee:
        """The function, or the one that computes its gradient, compiled for calls from a device.

        Raises what `instantiate`, `gradient_function`, `place` and `compile_plans` raise.
        """
        key = function.SerializeToString(deterministic=True), device, gradient
        found = self._callees.get(key)
        if found is None:
            body = (gradient_function if gradient else instantiate_call)(self.library, function)
            found = self._callees[key] = self.compile(body, device)
        return found

    def device(self, name: str) -> str:
        """The full name of a device of the session that fits `name`; InvalidArgumentError when there is none."""
        wanted = parse_full_name(name)
        for full in self._actors:
            if is_specification(wanted, parse_full_name(full)):
                return full
        raise InvalidArgumentError(f"no device {name!r} among {list(self._actors)}")

    def compile(self, body: FunctionBody, device: str) -> Callee:
        """A body, compiled for calls from a device."""
        graph = runnable_body(body, device)
        check_kinds(graph)
        check_keys(graph)
        place(graph, self._cluster, allow_soft_placement=self._soft)
        parts = split_graph(graph, PartitionOptions(new_name=name_counter(), get_incarnation=self._cluster.incarnation))
        work = [(part, self._actors[name].binder) for name, part in parts.items()]
        plans = compile_plans(work, called=True)
        used = tuple(zip(plans, [self._actors[name] for name in parts], strict=True))
        return Callee(body.name, used, body.argument_types, body.result_types)


def runnable_body(body: FunctionBody, device: str) -> Graph:
    """The part of a body that a call runs, conditionals and loops lowered; the caller's device where none is asked."""
    graph = lower_functional(body.graph)
    if graph is body.graph:
        graph = graph.clone()
    names = [node.name for node in (*body.results, *body.control_results)]
    wanted = [node for name in names if (node := graph.find_node(name)) is not None]
    wanted += [node for node in graph.op_nodes() if node.properties.op_def.is_stateful]
    prune_for_reverse_reachability(graph, wanted)
    graph.fix_source_and_sink_edges()
    requested, default = graph.requested_device_indices(), graph.intern_device(device)
    for node in graph.op_nodes():
        if not node.requested_device or node.op in ("_Arg", "_Retval"):
            requested[node.id] = default
    graph.request_devices(requested)
    return graph
