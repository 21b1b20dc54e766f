"""Replaces If and Case by Switch and Merge nodes around calls of their branches.

Every input gets a Switch by the condition, on the input's device, that leads to all branches. Every result is a Merge
of the branches' results. Nodes that waited for the conditional wait for `branch_executed`, which runs when the taken
branch is done, even if it has no results.

    switch_pred   Switch(pred, pred), the condition of all branches
    pivot_f, _t   its sides, which the calls of the branches wait for
    <input>       Switch(input, pred)
    then, else    calls of the branches
    output        Merge of their results
    (the name)    IdentityN of the outputs, or NoOp: keeps the node's name for fetches and targets

Names and devices are those of TensorFlow 2.21, which writes the colocation of a Case's inputs without "loc:@". The
nodes of the predicate and of the outputs of an If keep its `_class`; those of a Case do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..library.lowered_nodes import LoweredNode
from ..node import Node
from ..ops.record import Calls
from ..protos import NameAttrList
from .expansion import Expansion, NodeOutput


@dataclass(frozen=True, slots=True)
class _Branch:
    """One branch: the names of its call and pivot, its output of the Switch, and its function."""

    call: str
    pivot: str
    side: int
    function: NameAttrList


def lower_if(expansion: Expansion) -> list[Node]:
    """Replaces an If in place; returns the calls of its branches.

    Raises InvalidArgumentError for an input or a branch that does not fit.
    """
    branches = [
        _Branch(expansion.new_name("then"), "pivot_t", 1, expansion.function("then_branch")),
        _Branch(expansion.new_name("else"), "pivot_f", 0, expansion.function("else_branch")),
    ]
    return _Conditional(expansion, branches, Calls.IF).lower()


def lower_case(expansion: Expansion) -> list[Node]:
    """Replaces a Case in place; otherwise as `lower_if`."""
    functions: Sequence[NameAttrList] = expansion.node.attr("branches")
    branches = [
        _Branch(expansion.new_name(f"branch{k}"), f"pivot_{k}", k, function) for k, function in enumerate(functions)
    ]
    return _Conditional(expansion, branches, Calls.CASE).lower()


class _Conditional:
    """One conditional being replaced."""

    def __init__(self, expansion: Expansion, branches: Sequence[_Branch], kind: Calls) -> None:
        self.expansion = expansion
        self.graph = expansion.graph
        self.branches = branches
        self.kind = kind
        is_if, attrs = kind is Calls.IF, expansion.node.attrs
        self.switch_op = "Switch" if is_if else "_SwitchN"
        self.num_outs: Mapping[str, int] = {} if is_if else {"num_outs": len(branches)}
        self.group = b"loc:@" if is_if else b""
        self.colocation: Mapping[str, object] = {"_class": attrs["_class"]} if is_if and "_class" in attrs else {}

    def lower(self) -> list[Node]:
        """Replaces the node; returns the calls of the branches."""
        chosen = self.expansion.sources[0]
        condition = "switch_pred" if self.kind is Calls.IF else "branch_index"
        switch = self.expansion.add(
            condition, self.switch_op, chosen, chosen, attrs={**self.num_outs, **self.colocation}
        )
        sides = sorted(self.branches, key=lambda branch: branch.side)
        pivots = [
            self.expansion.add(branch.pivot, "Identity", (switch, branch.side), attrs=self.colocation)
            for branch in sides
        ]
        inputs = [self._switched(*source) for source in self.expansion.sources[1:]]
        for edge in self.expansion.node.in_edges():
            if edge.is_control:
                self.graph.add_control_edge(edge.src, switch)
        calls = [
            self.expansion.call(branch.call, branch.function, [(node, branch.side) for node in inputs])
            for branch in self.branches
        ]
        for branch, call in zip(self.branches, calls, strict=True):
            self.graph.add_control_edge(pivots[branch.side], call)
        outputs = self._outputs(calls)
        merges = (node.name for node, _ in outputs)
        switches = (switch.name, *(node.name for node in inputs))
        self.graph.lowered[self.expansion.name] = LoweredNode(self.kind, switches, tuple(merges))
        executed = self.expansion.merge("branch_executed", [(pivots[branch.side], 0) for branch in self.branches])
        for call in calls:
            executed.control_input(call)
        self._finish(outputs, executed.finalize(self.graph))
        return calls

    def _switched(self, source: Node, port: int) -> Node:
        return self.expansion.add(
            source.name,
            self.switch_op,
            (source, port),
            self.expansion.sources[0],
            device=source.requested_device,
            attrs={"_class": [self.group + source.name.encode()], **self.num_outs},
        )

    def _outputs(self, calls: Sequence[Node]) -> list[NodeOutput]:
        what = "output" if self.kind is Calls.IF else "merge"
        merges = [self.expansion.merge(what, [(call, port) for call in calls]) for port in range(calls[0].num_outputs)]
        for merge in merges:
            for name, value in self.colocation.items():
                merge.attr(name, value)
        return [(merge.finalize(self.graph), 0) for merge in merges]

    def _finish(self, outputs: list[NodeOutput], executed: Node) -> None:
        expansion, keeps_outputs = self.expansion, self.expansion.fetchable and bool(outputs)
        kept = expansion.builder(expansion.name, "IdentityN" if keeps_outputs else "NoOp")
        if keeps_outputs:
            kept.input_list(outputs)
        kept.control_input(executed).finalize(self.graph)
        expansion.replace(outputs, executed)
