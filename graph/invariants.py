"""The rules that hold of a graph at every stage, and the errors for broken ones.

A graph goes through the stages raw -> lowered -> placed -> pruned -> partitioned (-> optimised) -> plan. The checker of
a stage is in a file `invariants.py` beside the code that makes the stage (`passes` has three), and that code calls it
last. Checkers run only while `checking.py` says so, as in every test; otherwise a stage costs one test of a flag.

A broken rule is a mistake of this package, not of the user's graph: a wrong graph has been refused before, or is
allowed until it runs (an unconnected input, a value where a reference is wanted). Rules that such graphs break compare
two graphs instead: if the graph was complete before the stage, it is complete afterwards.

    partitioned graph, rule 'an input port reads what its type says': {{node y}} reads int32 from 'x:0' at port 0, which
    takes float; this is a mistake of Partita, please report it with the graph [node 'y', op 'Neg']

Checkers take linear time, and use numpy for rules about all nodes or all edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..errors import InternalError, PartitaError
from .arrays import Flags, Numbers
from .columns import CONTROL_SLOT, SINK_ID, SOURCE_ID, EdgeArrays, Ids
from .dtypes import REF_OFFSET, dtype_name
from .graph import Graph
from .ops.properties import NodeProperties
from .ops.record import NodeClass
from .ops.summaries import node_for_error
from .ops.type_inference import input_output_types
from .port_table import PortTable


class Stage:
    """A graph at the end of a stage, with its edges in columns, while its rules are checked."""

    def __init__(self, name: str, graph: Graph) -> None:
        self.name = name
        self.graph = graph
        self.edges: EdgeArrays = graph.edge_arrays()
        self.is_data: Flags = self.edges.dst_input != CONTROL_SLOT
        self.live: Flags = np.zeros(graph.num_node_ids, np.bool_)
        self.live[graph.live_nodes()] = True

    def broken(self, rule: str, problem: str, node: int | None = None) -> InternalError:
        """The error for a broken rule; `node` is the id of the node that breaks it, if there is one."""
        text = (
            f"{self.name} graph, rule {rule!r}: {problem}; "
            "this is a mistake of Partita, please report it with the graph"
        )
        if node is None or not 0 <= node < len(self.live) or not self.live[node]:
            return InternalError(text)
        name, op = self.graph.node_name(node), self.graph.node_properties(node).op
        return InternalError(text, node=name, op=op)

    def no_node(self, rule: str, wrong: Flags, problem: Callable[[int], str]) -> None:
        """Raises for the lowest node id in `wrong`; `problem` describes what is wrong with a node id."""
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            raise self.broken(rule, f"{node_for_error(self.text(node))} {problem(node)}", node)

    def no_edge(self, rule: str, wrong: Flags, problem: Callable[[int], str] = lambda _at: "") -> None:
        """Raises for the first edge in `wrong`, located at its consumer; `problem` describes what is wrong with it."""
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            src, output, dst, port = (int(column[at]) for column in self._columns())
            ends = f"an edge from {self.text(src)!r}, port {output}, to {self.text(dst)!r}, port {port}"
            raise self.broken(rule, f"{ends} {problem(at)}".rstrip(), dst)

    def _columns(self) -> tuple[npt.NDArray[np.int32], ...]:
        return self.edges.src, self.edges.src_output, self.edges.dst, self.edges.dst_input

    def text(self, node: int) -> str:
        """The name of a node, or its id where there is none."""
        return (self.graph.names()[node] if 0 <= node < len(self.live) else None) or f"<no node {node}>"

    def port_types(self) -> tuple[Numbers, Numbers]:
        """Per edge the type of its output port and of its input port; 0 for ports that do not exist."""
        kinds, kind_of = self.graph.distinct_properties()
        output_types, input_types = (
            PortTable([k.output_types for k in kinds]),
            PortTable([k.input_types for k in kinds]),
        )
        edges = self.edges
        return output_types.at(kind_of[edges.src], edges.src_output), input_types.at(
            kind_of[edges.dst], edges.dst_input
        )


def num_open_ports(graph: Graph) -> int:
    """How many input ports of a graph have no edge."""
    kinds, kind_of = graph.distinct_properties()
    declared = np.array([len(kind.input_types) for kind in kinds], np.int64)[kind_of[kind_of >= 0]]
    return int(declared.sum()) - int((graph.edge_arrays().dst_input != CONTROL_SLOT).sum())


def is_fed_or_received(graph: Graph, node: int) -> bool:
    """Whether a node may stand for a fed tensor, or for one that comes from another device."""
    return graph.node_properties(node).op_def.record.node_class in (NodeClass.ARG, NodeClass.RECV)


def repeated(among: Flags, first: Ids, second: Ids) -> Flags:
    """Which rows marked in `among` repeat the pair of numbers (not negative) of an earlier marked row."""
    at = np.flatnonzero(among)
    again = np.ones(len(at), np.bool_)
    again[np.unique(first[at].astype(np.int64) << 32 | second[at], return_index=True)[1]] = False
    marked = np.zeros_like(among)
    marked[at[again]] = True
    return marked


def check_structure(
    stage: Stage,
    *,
    original: Graph | None = None,
    is_fed: Callable[[int], bool] = lambda _node: False,
    types_fit: bool = False,
) -> None:
    """Raises InternalError for the first broken rule of those that hold of a graph at every stage.

    `original` is the graph before the stage: if it has no open ports, this one may have none. `is_fed` tells whether a
    node id stands for a fed tensor, which may be a value where a reference is wanted: cutting refuses that, and it
    refuses functions that do not fit their calls. `types_fit`: the graph has been cut, so all types must fit.
    """
    _check_nodes(stage)
    _check_edges(stage)
    _check_ports(stage)
    if types_fit or not len(stage.graph.functions):
        _check_types(stage, is_fed)
    if original is None or (original is not stage.graph and not num_open_ports(original)):
        _check_filled(stage, may_be_open=original is None)
    _check_kinds(stage)


def _check_nodes(stage: Stage) -> None:
    graph = stage.graph
    names = [name for name in graph.names() if name is not None]
    rule = "nodes 0 and 1 are source and sink"
    if names[: SINK_ID + 1] != ["_SOURCE", "_SINK"] or not stage.live[[SOURCE_ID, SINK_ID]].all():
        raise stage.broken(rule, f"they are {names[: SINK_ID + 1]}")
    if len(set(names)) < len(names) or "" in names:
        twice = next((name for name, count in Counter(names).items() if count > 1), "")
        raise stage.broken("every node has a name of its own", f"{twice!r} is that of several, or empty")


def _check_edges(stage: Stage) -> None:
    edges, live = stage.edges, stage.live
    in_range = (edges.src >= 0) & (edges.src < len(live)) & (edges.dst >= 0) & (edges.dst < len(live))
    stage.no_edge("edges join live nodes", ~in_range)
    stage.no_edge("edges join live nodes", ~(live[edges.src] & live[edges.dst]))
    ends = (edges.dst == SOURCE_ID) | (edges.src == SINK_ID)
    stage.no_edge("nothing comes before the source or after the sink", ends)
    control = (edges.src_output == CONTROL_SLOT, edges.dst_input == CONTROL_SLOT)
    stage.no_edge("an edge is for control at both ends or at neither", control[0] != control[1])
    outside = (edges.src == SOURCE_ID) | (edges.dst == SINK_ID)
    stage.no_edge("source and sink have control edges only", outside & ~control[0])


def check_loose_ends(stage: Stage) -> None:
    """Checks that every node has an edge from the source side and to the sink side, as walks from either need it.

    Lowering does not keep this rule, so it holds of raw graphs, and again from the pruned stage on.
    """
    edges, live = stage.edges, stage.live
    has_in = np.bincount(edges.dst, minlength=len(live)) > 0
    has_out = np.bincount(edges.src, minlength=len(live)) > 0
    has_in[SOURCE_ID] = has_out[SINK_ID] = True
    stage.no_node("loose ends hang on source and sink", live & ~(has_in & has_out), lambda _node: "does not")


def _check_ports(stage: Stage) -> None:
    edges, data = stage.edges, stage.is_data
    output_types, input_types = stage.port_types()
    stage.no_edge("an edge leaves a port that exists", data & (output_types == 0))
    stage.no_edge("an edge enters a port that exists", data & (input_types == 0))
    twice = repeated(data, edges.dst, edges.dst_input)
    stage.no_edge("an input port reads one tensor", twice, lambda _at: "is its second edge")


def _check_types(stage: Stage, is_fed: Callable[[int], bool]) -> None:
    output_types, input_types = stage.port_types()
    wrong = stage.is_data & (output_types != input_types) & (output_types != input_types + REF_OFFSET)
    for at in np.flatnonzero(wrong & (output_types + REF_OFFSET == input_types)).tolist():
        wrong[at] = not is_fed(int(stage.edges.src[at]))
    stage.no_edge(
        "an input port reads what its type says",
        wrong,
        lambda at: f"carries {dtype_name(int(output_types[at]))} where {dtype_name(int(input_types[at]))} is taken",
    )


def _check_filled(stage: Stage, *, may_be_open: bool) -> None:
    """Every input port has an edge; of a node that may be incomplete the lowest ports have them."""
    kinds, kind_of = stage.graph.distinct_properties()
    declared = np.array([len(kind.input_types) for kind in kinds], np.int64)
    wanted = np.where(kind_of >= 0, declared[np.maximum(kind_of, 0)], 0)
    connected = np.bincount(stage.edges.dst[stage.is_data], minlength=len(wanted))
    if not may_be_open:
        stage.no_node(
            "every input port reads a tensor",
            connected < wanted,
            lambda node: f"reads {connected[node]} of {wanted[node]}",
        )
    last = np.full(len(wanted), -1)
    np.maximum.at(last, stage.edges.dst, stage.edges.dst_input)
    stage.no_node(
        "input ports are filled from the first", last >= connected, lambda node: f"reads at port {last[node]}"
    )


def _check_kinds(stage: Stage) -> None:
    """Port types follow from op and attrs; nodes of one kind share them, and transfers have theirs in a table."""
    kinds, kind_of = stage.graph.distinct_properties()
    has_details = stage.graph.details()[1] >= 0
    for number, kind in enumerate(kinds):
        if kind.entries and (reason := _mistake_in_types(kind)):
            alike = (kind_of == number) & ~has_details
            if alike.any():
                node = int(alike.argmax())
                raise stage.broken("port types follow from op and attrs", f"{stage.text(node)!r}: {reason}", node)


def _mistake_in_types(kind: NodeProperties) -> str:
    """How the port types of a kind differ from those that op and attrs determine; "" if they agree."""
    try:
        types = input_output_types(kind.op_def, kind.attrs)
    except PartitaError as error:
        return error.message
    has = kind.input_types, kind.output_types
    return "" if types == has else f"has {has}, op and attrs say {types}"
