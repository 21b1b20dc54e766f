"""What always holds of a graph, whatever stage it is in, and how a broken rule is told.

A graph goes through the stages raw -> lowered -> placed -> pruned -> partitioned -> plan. What may exist after a stage
is said by a checker in a file `invariants.py` beside the code that makes it (`passes` has two). It runs at the end
of that code while `checking` is on: in every test, and in no program, which pays one look at a flag per stage.

A broken rule is a mistake of this package, whatever graph it was given: what is wrong with a graph of the user's has
been refused before, or is allowed until somebody runs it (an input that nothing is connected to, a value where a
reference is due). So rules that such graphs break are those of a pair of graphs: what was whole before the stage is
whole after it.

    partitioned graph, rule 'an input port reads what its type says': {{node y}} reads int32 from 'x:0' at port 0, which
    takes float; this is a mistake of Partita, please report it with the graph [node 'y', op 'Neg']

Checkers are linear, and numpy wherever a rule is about all nodes or all edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from ..errors import InternalError, PartitaError
from .columns import CONTROL_SLOT, SINK_ID, SOURCE_ID, EdgeArrays, Ids
from .dtypes import REF_OFFSET, dtype_name
from .graph import Graph
from .ops.properties import NodeProperties
from .ops.summaries import node_for_error
from .ops.type_inference import input_output_types
from .port_table import PortTable

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_checking = False


@contextmanager
def checking(*, on: bool = True) -> Iterator[None]:
    """Every stage that ends inside checks what it has made, or none does."""
    global _checking  # noqa: PLW0603 - one switch for the process, as `warnings` has one
    before, _checking = _checking, on
    try:
        yield
    finally:
        _checking = before


def are_checked() -> bool:
    """Whether the rules of stages are checked."""
    return _checking


class Stage:
    """A graph at the end of a stage, with its edges in columns, while its rules are checked."""

    def __init__(self, name: str, graph: Graph) -> None:
        self.name = name
        self.graph = graph
        self.edges: EdgeArrays = graph.edge_arrays()
        self.is_data: Mask = self.edges.dst_input != CONTROL_SLOT
        self.live: Mask = np.zeros(graph.num_node_ids, np.bool_)
        self.live[graph.live_nodes()] = True

    def broken(self, rule: str, found: str, node: int | None = None) -> InternalError:
        """The error for a rule that does not hold, at a node if it is that of one."""
        text = (
            f"{self.name} graph, rule {rule!r}: {found}; this is a mistake of Partita, please report it with the graph"
        )
        if node is None or not 0 <= node < len(self.live) or not self.live[node]:
            return InternalError(text)
        name, op = self.graph.node_name(node), self.graph.node_properties(node).op
        return InternalError(text, node=name, op=op)

    def no_node(self, rule: str, wrong: Mask, found: Callable[[int], str]) -> None:
        """Raises for the first node, by id, that `wrong` marks; `found` says of its id what it is."""
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            raise self.broken(rule, f"{node_for_error(self.text(node))} {found(node)}", node)

    def no_edge(self, rule: str, wrong: Mask, found: Callable[[int], str] = lambda _at: "") -> None:
        """Raises for the first edge that `wrong` marks, at the node it enters; `found` says of its position more."""
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            src, output, dst, port = (int(column[at]) for column in self._columns())
            ends = f"an edge from {self.text(src)!r}, port {output}, to {self.text(dst)!r}, port {port}"
            raise self.broken(rule, f"{ends} {found(at)}".rstrip(), dst)

    def _columns(self) -> tuple[npt.NDArray[np.int32], ...]:
        return self.edges.src, self.edges.src_output, self.edges.dst, self.edges.dst_input

    def text(self, node: int) -> str:
        """The name of a node, or its id where there is none."""
        return (self.graph.names()[node] if 0 <= node < len(self.live) else None) or f"<no node {node}>"

    def port_types(self) -> tuple[Numbers, Numbers]:
        """Per edge the type that its source gives and that its end takes; 0 for ports that do not exist."""
        kinds, kind_of = self.graph.distinct_properties()
        given, taken = PortTable([k.output_types for k in kinds]), PortTable([k.input_types for k in kinds])
        edges = self.edges
        return given.at(kind_of[edges.src], edges.src_output), taken.at(kind_of[edges.dst], edges.dst_input)


def num_open_ports(graph: Graph) -> int:
    """How many input ports of a graph nothing is connected to."""
    kinds, kind_of = graph.distinct_properties()
    declared = np.array([len(kind.input_types) for kind in kinds], np.int64)[kind_of[kind_of >= 0]]
    return int(declared.sum()) - int((graph.edge_arrays().dst_input != CONTROL_SLOT).sum())


def repeated(among: Mask, first: Ids, second: Ids) -> Mask:
    """Which rows that `among` marks have the pair of numbers, neither of them negative, of a marked row before them."""
    at = np.flatnonzero(among)
    again = np.ones(len(at), np.bool_)
    again[np.unique(first[at].astype(np.int64) << 32 | second[at], return_index=True)[1]] = False
    marked = np.zeros_like(among)
    marked[at[again]] = True
    return marked


def check_structure(
    stage: Stage,
    *,
    given: Graph | None = None,
    is_fed: Callable[[int], bool] = lambda _node: False,
    types_fit: bool = False,
) -> None:
    """Raises InternalError for the first rule that does not hold of a graph in any stage.

    `given` is the graph that the stage began with: if no port of that is open, none of this is. `is_fed` says of a
    node's id whether it stands for a fed tensor, which may be given where a reference is due: that is refused when the
    graph is cut, and so are functions that do not fit what calls them. `types_fit`: that has been done.
    """
    _check_nodes(stage)
    _check_edges(stage)
    _check_ports(stage)
    if types_fit or not len(stage.graph.functions):
        _check_types(stage, is_fed)
    if given is None or (given is not stage.graph and not num_open_ports(given)):
        _check_filled(stage, may_be_open=given is None)
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
    """Every node comes after the source and before the sink, as a walk from one of them needs it.

    Lowering does not see to it, so it holds of raw graphs, and again from the pruned stage on.
    """
    edges, live = stage.edges, stage.live
    has_in = np.bincount(edges.dst, minlength=len(live)) > 0
    has_out = np.bincount(edges.src, minlength=len(live)) > 0
    has_in[SOURCE_ID] = has_out[SINK_ID] = True
    stage.no_node("loose ends hang on source and sink", live & ~(has_in & has_out), lambda _node: "does not")


def _check_ports(stage: Stage) -> None:
    edges, data = stage.edges, stage.is_data
    given, taken = stage.port_types()
    stage.no_edge("an edge leaves a port that exists", data & (given == 0))
    stage.no_edge("an edge enters a port that exists", data & (taken == 0))
    twice = repeated(data, edges.dst, edges.dst_input)
    stage.no_edge("an input port reads one tensor", twice, lambda _at: "is its second edge")


def _check_types(stage: Stage, is_fed: Callable[[int], bool]) -> None:
    given, taken = stage.port_types()
    wrong = stage.is_data & (given != taken) & (given != taken + REF_OFFSET)
    for at in np.flatnonzero(wrong & (given + REF_OFFSET == taken)).tolist():
        wrong[at] = not is_fed(int(stage.edges.src[at]))
    stage.no_edge(
        "an input port reads what its type says",
        wrong,
        lambda at: f"carries {dtype_name(int(given[at]))} where {dtype_name(int(taken[at]))} is taken",
    )


def _check_filled(stage: Stage, *, may_be_open: bool) -> None:
    """Every port of a node reads something; what may be open has all its edges at the lowest ports."""
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
    """Port types are what op and attrs say; nodes of one kind share them, and transfers have theirs in a table."""
    kinds, kind_of = stage.graph.distinct_properties()
    has_details = stage.graph.details()[1] >= 0
    for number, kind in enumerate(kinds):
        if kind.entries and (reason := _mistake_in_types(kind)):
            alike = (kind_of == number) & ~has_details
            if alike.any():
                node = int(alike.argmax())
                raise stage.broken("port types follow from op and attrs", f"{stage.text(node)!r}: {reason}", node)


def _mistake_in_types(kind: NodeProperties) -> str:
    """What op and attrs say of port types, if it is something else than what the node has; "" if not."""
    try:
        types = input_output_types(kind.op_def, kind.attrs)
    except PartitaError as error:
        return error.message
    has = kind.input_types, kind.output_types
    return "" if types == has else f"has {has}, op and attrs say {types}"
