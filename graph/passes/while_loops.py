"""Replaces While by Enter, Merge, Switch, NextIteration and Exit nodes around calls of its condition and body.

The frame has the node's name. The nodes of a loop variable are on the device of its first value, placed there if that
is placed already. Resources do not change, so they enter as loop constants, and the node's resource outputs are its
inputs. Nodes that waited for the loop wait for `LoopExecuted`, which runs after all Exits. Names and devices are those
of TensorFlow 2.21.
"""

from __future__ import annotations

from ...errors import InvalidArgumentError
from ..dtypes import DataType, is_ref
from ..functions.body import instantiate_call
from ..library.lowered_nodes import LoweredNode
from ..node import Node
from ..ops.record import Calls
from .expansion import Expansion, NodeOutput


def lower_while(expansion: Expansion) -> list[Node]:
    """Replaces a While in place; returns the calls of condition and body.

    Raises InvalidArgumentError where condition or body do not fit the loop's variables, where these cannot change, and
    where no iteration may run.
    """
    return _Loop(expansion).lower()


class _Loop:
    """One While that is being replaced; lists of nodes are by loop variable, without loop constants."""

    def __init__(self, expansion: Expansion) -> None:
        self.graph = expansion.graph
        self.expansion = expansion
        self.cond_name, self.body_name = self.expansion.new_name("cond"), self.expansion.new_name("body")
        self.is_constant = self._constants(expansion.node)

    def lower(self) -> list[Node]:
        """Replaces the node; returns the calls of condition and body."""
        if self.expansion.node.attr("parallel_iterations") < 1:
            raise InvalidArgumentError(
                "parallel_iterations must be > 0", node=self.expansion.name, op=self.expansion.node.op
            )
        if all(self.is_constant):
            raise InvalidArgumentError(
                "none of the loop's variables can change; add one that tells iterations apart, such as a counter",
                node=self.expansion.name,
                op=self.expansion.node.op,
            )
        enters = self._enters()
        changing = [enter for enter, constant in zip(enters, self.is_constant, strict=True) if not constant]
        merges = [self.expansion.beside(enter, self.expansion.merge("merge", [(enter, 0)] * 2)) for enter in changing]
        cond = self.expansion.call(
            self.cond_name, self.expansion.function("cond"), self._values(enters, [(merge, 0) for merge in merges])
        )
        self.graph.add_control_edge(merges[0], cond)
        proceed = self.expansion.add("LoopCond", "LoopCond", (cond, 0))
        switches = self._switches(merges, proceed)
        name, (switched, merged) = self.expansion.name, ([n.name for n in nodes] for nodes in (switches, merges))
        self.graph.lowered[name] = LoweredNode(Calls.WHILE, tuple(switched), tuple(merged), frame=name)
        body = self._body(enters, switches)
        outputs, executed = self._exits(switches)
        self._close(merges, body)
        self.expansion.replace(outputs, executed)
        return [cond, body]

    def _constants(self, node: Node) -> list[bool]:
        """By loop variable: whether it is a resource that the body returns as it got it."""
        types, library = node.input_types, self.graph.functions
        if DataType.RESOURCE not in types or (function := self.expansion.function("body")).name not in library:
            return [False] * len(types)
        body = instantiate_call(library, function)
        returned = [result.input_edge(0).src for result in body.results]
        pairs = zip(types, body.arguments, returned, strict=False)
        constants = [dtype == DataType.RESOURCE and argument == result for dtype, argument, result in pairs]
        return constants + [False] * (len(types) - len(constants))

    def _enters(self) -> list[Node]:
        expansion, attrs = self.expansion, self.expansion.node.attrs
        enters = [
            expansion.beside(
                source[0],
                expansion.builder(expansion.new_name("enter"), "Enter", source)
                .attr("frame_name", expansion.name)
                .attr("parallel_iterations", attrs["parallel_iterations"])
                .attr("is_constant", constant),
            )
            for source, constant in zip(expansion.sources, self.is_constant, strict=True)
        ]
        waits = [edge.src for edge in expansion.node.in_edges() if edge.is_control and edge.src.is_op]
        if waits:
            ready = expansion.builder(expansion.new_name("LoopControlInputs"), "NoOp")
            for node in waits:
                ready.control_input(node)
            gate = ready.finalize(self.graph)
            for enter in enters:
                self.graph.add_control_edge(gate, enter)
        return enters

    def _values(self, enters: list[Node], changing: list[NodeOutput]) -> list[NodeOutput]:
        """All loop variables as inputs of a call: constants from their Enters, the others from `changing`."""
        varying = iter(changing)
        return [
            (enter, 0) if constant else next(varying) for enter, constant in zip(enters, self.is_constant, strict=True)
        ]

    def _switches(self, merges: list[Node], proceed: Node) -> list[Node]:
        names = [
            source.name
            for (source, _), constant in zip(self.expansion.sources, self.is_constant, strict=True)
            if not constant
        ]
        return [
            self.expansion.beside(
                merge,
                self.expansion.builder(
                    self.expansion.new_name(f"{name}_switch"),
                    "RefSwitch" if is_ref(merge.output_types[0]) else "Switch",
                    (merge, 0),
                    (proceed, 0),
                ),
            )
            for merge, name in zip(merges, names, strict=True)
        ]

    def _body(self, enters: list[Node], switches: list[Node]) -> Node:
        inputs = self._values(enters, [(switch, 1) for switch in switches])
        body = self.expansion.call(self.body_name, self.expansion.function("body"), inputs)
        identity = "RefIdentity" if is_ref(switches[0].output_types[1]) else "Identity"
        self.graph.add_control_edge(self.expansion.add("loop_body_control", identity, (switches[0], 1)), body)
        return body

    def _exits(self, switches: list[Node]) -> tuple[list[NodeOutput], Node]:
        """Adds Exits and the node that keeps the name; returns the outputs, and the node that runs after the loop."""
        expansion = self.expansion
        exits = [
            expansion.beside(switch, expansion.builder(expansion.new_name("exit"), "Exit", (switch, 0)))
            for switch in switches
        ]
        remaining = iter(exits)
        outputs = [
            source if constant else (next(remaining), 0)
            for source, constant in zip(expansion.sources, self.is_constant, strict=True)
        ]
        end = expansion.builder(expansion.new_name("LoopExecuted"), "NoOp")
        for node in exits:
            end.control_input(node)
        executed = end.finalize(self.graph)
        if expansion.fetchable:
            expansion.builder(expansion.name, "IdentityN").input_list(outputs).finalize(self.graph)
        else:
            expansion.builder(expansion.name, "NoOp").control_input(executed).finalize(self.graph)
        return outputs, executed

    def _close(self, merges: list[Node], body: Node) -> None:
        """Connects the body's results to the Merges through NextIteration nodes."""
        ports = [port for port, constant in enumerate(self.is_constant) if not constant]
        backs = [
            self.expansion.beside(
                merge,
                self.expansion.builder(
                    self.expansion.new_name("next_iteration"), "NextIteration", (body, port)
                ).control_input(body),
            )
            for port, merge in zip(ports, merges, strict=True)
        ]
        for back, merge in zip(backs, merges, strict=True):
            self.graph.update_edge(back, 0, merge, 1)
