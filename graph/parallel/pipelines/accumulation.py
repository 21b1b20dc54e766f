"""The functions of the way back with the sums of their gradients: a call is given the sums so far, and gives new ones.

    backward_s1(x, dy) -> dx, d_w                   the first call: the sum is d_w
    backward_s1_adding(x, dy, d_w_sum) -> dx, d_w_sum + d_w       all later ones

So a step has as many nodes for the sums as stages have calls, whatever the number of variables. Gradients of half
precision may be added up in float32: a step of 64 micro-batches would lose what is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from ....errors import UnimplementedError
from ...attrs import encode
from ...dtypes import DataType, base_type
from ...edge_ends import Output
from ...graph import Graph
from ...ops.registry import lookup_op
from ...protos import FunctionDef, NodeDef
from .functions import StageFunction, output_text, plain_name

HALVES = frozenset({DataType.HALF, DataType.BFLOAT16})


@dataclass
class SummingFunction:
    """The function of a stage in one direction for its first call, and for all others; `sums` are behind its results.

    Without sums both are the same.
    """

    first: StageFunction
    later: StageFunction
    sums: Sequence[Output] = ()
    places: dict[Output, int] = field(default_factory=dict)
    """by tensor that a call gives its place among the outputs; a sum has that of the sum"""

    def __post_init__(self) -> None:
        outputs = (*self.first.results, *self.sums)
        self.places.update((output, place) for place, output in reversed([*enumerate(outputs)]))

    def first_sum(self) -> int:
        """The place of the first sum among the outputs of a call."""
        return len(self.first.results)


def with_sums(
    graph: Graph, function: StageFunction, sums: Sequence[Output], *, is_repeated: bool, in_float32: bool
) -> SummingFunction:
    """A function of a stage with sums of some of its tensors; `is_repeated` says that it is called several times.

    Raises UnimplementedError for a tensor of a type that has no sum.
    """
    if not sums:
        return SummingFunction(function, function)
    for node, port in sums:
        dtype = base_type(graph.node_properties(node).output_types[port])
        if is_repeated and dtype not in (lookup_op("AddV2").attrs["T"].allowed or ()):
            name = graph.node_name(node)
            raise UnimplementedError(f"{name!r} is {dtype.name} and cannot be added up; cast it first", node=name)
    first = _Summing(graph, function, adds=False, in_float32=in_float32).run(sums)
    later = _Summing(graph, function, adds=True, in_float32=in_float32).run(sums) if is_repeated else first
    return SummingFunction(first, later, sums)


class _Summing:
    """One function being made from that without sums."""

    def __init__(self, graph: Graph, function: StageFunction, *, adds: bool, in_float32: bool) -> None:
        self.graph, self.adds, self.in_float32 = graph, adds, in_float32
        definition = FunctionDef()
        definition.CopyFrom(function.definition)
        if adds:
            definition.signature.name += "_adding"
        self.made = StageFunction(
            definition,
            list(function.arguments),
            list(function.results),
            list(function.waits_for),
            function.is_stateful,
            list(function.argument_types),
            list(function.result_types),
        )
        arguments = [*definition.signature.input_arg, *definition.signature.output_arg]
        self.taken = {arg.name for arg in arguments} | {node.name for node in definition.node_def}
        self.waiting: dict[str, list[NodeDef]] = {}
        """the nodes that wait for one, by its name as an input has it; what waits for a gradient waits for its sum"""
        for waiting in definition.node_def:
            for text in waiting.input:
                if text[:1] == "^":
                    self.waiting.setdefault(text, []).append(waiting)

    def run(self, sums: Sequence[Output]) -> StageFunction:
        """The function with all sums."""
        for output in sums:
            self._add(output)
        return self.made

    def _add(self, output: Output) -> None:
        node, port = self.graph.node(output[0]), output[1]
        dtype, text, own = base_type(node.output_types[port]), output_text(node, port), self._unused(f"{node.name}/sum")
        if self.in_float32 and dtype in HALVES:
            text = self._node(node.name, f"{own}/wide", "Cast", [text], "y", SrcT=dtype, DstT=DataType.FLOAT)
            dtype = DataType.FLOAT
        if self.adds:
            argument = self._unused(plain_name(own))
            self.made.definition.signature.input_arg.add(name=argument, type=int(dtype))
            self.made.argument_types.append(dtype)
            text = self._node(node.name, own, "AddV2", [argument, text], "z", T=dtype)
        result = self._unused(f"{plain_name(own)}_out")
        self.made.definition.signature.output_arg.add(name=result, type=int(dtype))
        self.made.definition.ret[result] = text
        self.made.result_types.append(dtype)

    def _node(self, gradient: str, name: str, op: str, inputs: Sequence[str], output: str, **types: DataType) -> str:
        """A new node for a gradient, which counts as an effect of the call; how the function names its output."""
        name, definition = self._unused(name), self.made.definition
        made = definition.node_def.add(name=name, op=op, input=inputs)
        for attr, dtype in types.items():
            made.attr[attr].CopyFrom(encode(dtype, "type"))
        for waiting in self.waiting.get(f"^{gradient}", ()):
            waiting.input.append(f"^{name}")
        definition.control_ret[name] = name
        definition.signature.control_output.append(name)
        return f"{name}:{output}:0"

    def _unused(self, wanted: str) -> str:
        name = next(n for k in count() if (n := f"{wanted}_{k}" if k else wanted) not in self.taken)
        self.taken.add(name)
        return name
