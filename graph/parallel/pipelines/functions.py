"""A set of nodes of a graph as one function, which a pipeline calls once per micro-batch.

Constants and shapes that the nodes read are computed in the function; every other tensor from outside is an argument:

    x -> y = MatMul(x, w) -> z = Mul(y, two)      nodes y and z, result z      f(x, w) = Mul(MatMul(x, w), two)

The function requests no devices: its nodes run where the call does. Equal constants become one. Everything that it
computes counts as an effect of the call, so that what waits for a call waits for all of it, also after the call was
inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase, digits
from typing import NamedTuple

from ...dtypes import DataType, base_type
from ...edge_ends import Output
from ...node import Node
from ...ops.type_inference import name_ranges
from ...protos import FunctionDef, NodeDef
from .region import MicroBatchRegion

_LETTERS = frozenset(ascii_lowercase + digits)
_LEFT_OUT = frozenset({"_class", "_output_shapes"})  # groups name nodes outside, shapes those of the whole batch


@dataclass
class StageFunction:
    """A function and how to call it: its arguments and results are tensors of the graph that it was taken from."""

    definition: FunctionDef
    arguments: list[Output] = field(default_factory=list)
    results: list[Output] = field(default_factory=list)
    waits_for: list[int] = field(default_factory=list)
    """nodes outside that a node of the function has a control edge from"""
    is_stateful: bool = False
    argument_types: list[DataType] = field(default_factory=list)
    result_types: list[DataType] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name in the library."""
        return self.definition.signature.name


def stage_function(
    region: MicroBatchRegion,
    name: str,
    nodes: Collection[int],
    results: Sequence[Output],
    is_repeated: Callable[[int], bool],
) -> StageFunction:
    """The function `name` that computes `results`, which are outputs of `nodes`.

    `is_repeated` says of nodes of the region whether the function has a copy of them where it reads them.
    """
    return _Extraction(region, name, nodes, is_repeated).run(results)


def plain_name(wanted: str) -> str:
    """A name that an argument or result may have: lower case letters, digits and underscores."""
    plain = "".join(letter if letter in _LETTERS else "_" for letter in wanted.lower())
    return plain if plain[:1].isalpha() else f"t_{plain}"


def output_text(node: Node, port: int) -> str:
    """How a function names an output of one of its nodes: "node:output:k"."""
    for output, ports in name_ranges(node.op_def, node.attrs)[1].items():
        if port in ports:
            return f"{node.name}:{output}:{port - ports.start}"
    raise AssertionError(node.name, port)  # edges of an imported graph leave ports that exist


class _Inputs(NamedTuple):
    """The inputs of a node by port, and the nodes that it waits for besides."""

    data: dict[int, Output]
    control: list[int]


class _Extraction:
    """One function being made."""

    def __init__(
        self, region: MicroBatchRegion, name: str, nodes: Collection[int], is_repeated: Callable[[int], bool]
    ) -> None:
        self.region, self.is_repeated = region, is_repeated
        self.graph = region.graph
        self.nodes = set(nodes)
        self.made = StageFunction(FunctionDef())
        self.made.definition.signature.name = name
        self.texts: dict[Output, str] = {}  # of arguments
        self.used: set[str] = set()
        self.equal: dict[int, int] = {}
        """constants that are left out -> the equal ones that are read in their place"""

    def run(self, results: Sequence[Output]) -> StageFunction:
        inputs: dict[int, _Inputs] = {}
        waiting = sorted(self.nodes)
        for number in waiting:  # grows by what is copied
            inputs[number] = self._inputs(number)
            read = {node for node, _ in inputs[number].data.values()} - self.nodes
            copied = {node for node in read if self.region.is_copied(node) or self.is_repeated(node)}
            self.nodes |= copied
            waiting += sorted(copied)
        for source in dict.fromkeys(source for number in waiting for source in inputs[number].data.values()):
            if source[0] not in self.nodes:
                self._add_argument(source)
        self._merge_constants(inputs)
        for number in sorted(self.nodes - self.equal.keys()):
            self._add_node(number, inputs[number])
        for result in results:
            self._add_result(result)
        self._add_effects(self.equal.get(node, node) for node, _ in results)
        self.made.definition.signature.is_stateful = self.made.is_stateful
        return self.made

    def _inputs(self, number: int) -> _Inputs:
        ends = _Inputs({}, [])
        for edge in self.graph.node(number).in_edges():
            if edge.is_control:
                ends.control.extend([edge.src.id] * edge.src.is_op)
            else:
                ends.data[edge.dst_input] = edge.src.id, edge.src_output
        return ends

    def _add_argument(self, source: Output) -> None:
        node, port = self.graph.node(source[0]), source[1]
        dtype = base_type(node.output_types[port])
        self.texts[source] = name = self._unique(f"{node.name}_{port}" if port else node.name)
        self.made.arguments.append(source)
        self.made.argument_types.append(dtype)
        self.made.definition.signature.input_arg.add(name=name, type=int(dtype))

    def _unique(self, wanted: str) -> str:
        """A name of an argument or result."""
        plain = plain_name(wanted)
        number, name = 1, plain
        while name in self.used or self.graph.find_id(name) in self.nodes:
            name, number = f"{plain}_{number}", number + 1
        self.used.add(name)
        return name

    def _merge_constants(self, inputs: Mapping[int, _Inputs]) -> None:
        """Finds constants of equal value and marks: a layer has the shapes, axes and group keys of all others."""
        first: dict[bytes, int] = {}
        for number in sorted(self.nodes):
            node = self.graph.node(number)
            if node.op == "Const" and not inputs[number].control:
                alike = NodeDef()
                self._copy_attrs(node, alike)
                known = first.setdefault(alike.SerializeToString(deterministic=True), number)
                if known != number:
                    self.equal[number] = known

    @staticmethod
    def _copy_attrs(node: Node, copy: NodeDef) -> None:
        for name in node.attrs:
            if name not in _LEFT_OUT:
                copy.attr[name].CopyFrom(node.attrs.message(name))

    def _add_node(self, number: int, inputs: _Inputs) -> None:
        node = self.graph.node(number)
        copy: NodeDef = self.made.definition.node_def.add(name=node.name, op=node.op)
        self._copy_attrs(node, copy)
        copy.input.extend(self._text(inputs.data[port]) for port in sorted(inputs.data))
        for source in dict.fromkeys(inputs.control):
            if source in self.nodes:
                copy.input.append(f"^{self.graph.node_name(self.equal.get(source, source))}")
            elif not self.region.is_copied(source) and source not in self.made.waits_for:
                self.made.waits_for.append(source)
        self.made.is_stateful |= node.op_def.is_stateful

    def _text(self, tensor: Output) -> str:
        """How the function names a tensor: an argument, or "node:output:k"."""
        if tensor in self.texts:
            return self.texts[tensor]
        return output_text(self.graph.node(self.equal.get(tensor[0], tensor[0])), tensor[1])

    def _add_result(self, result: Output) -> None:
        node, port = self.graph.node(result[0]), result[1]
        dtype = base_type(node.output_types[port])
        name = self._unique(f"{node.name}_{port}_out" if port else f"{node.name}_out")
        self.made.results.append(result)
        self.made.result_types.append(dtype)
        self.made.definition.signature.output_arg.add(name=name, type=int(dtype))
        self.made.definition.ret[name] = self._text(result)

    def _add_effects(self, results: Iterable[int]) -> None:
        last = dict.fromkeys((*results, *self._ends()))
        for name in (self.graph.node_name(number) for number in last):
            self.made.definition.control_ret[name] = name
            self.made.definition.signature.control_output.append(name)

    def _ends(self) -> Iterator[int]:
        """The nodes that no other node of the function reads or waits for."""
        for number in sorted(self.nodes - self.equal.keys()):
            if all(edge.dst.id not in self.nodes for edge in self.graph.node(number).out_edges()):
                yield number
