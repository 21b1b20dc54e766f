"""Nodes of called functions in a trace: a node `mm` of a function that node `f` calls is `f/mm`.

TensorFlow names a node of a function that it has not inlined `mm`, whoever called. Such a run belongs to the call that
has this name inside; if several have, each gets an equal share of the runs, in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ....errors import PartitaError
from ....graph.analysis.fed_nodes import fed_tensor
from ....graph.functions.body import instantiate_call
from ....graph.library.calls import called_by, calls_functions

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.formats.trace_runs import TracedRun
    from ....graph.library.function_library import FunctionLibrary
    from ....graph.ops.properties import NodeProperties
    from ....graph.tensor_id import TensorId


class CalledNodes:
    """The nodes of a joined graph by name, and those of all functions that it calls by the path of calls."""

    def __init__(self, graph: JoinedGraph) -> None:
        self._library = next((library for library in graph.functions if library is not None), None)
        self._kinds = graph.kinds
        self.root: Mapping[str, int] = dict(zip(graph.names, graph.kind_of.tolist(), strict=True))

    def find(self, name: str) -> NodeProperties | None:
        """The properties of a node of the graph or, by path, of a function; None if there is none."""
        if name in self.root:
            return self._kinds[self.root[name]]
        return None if self._library is None else self._inside(name, self._library)

    def _inside(self, name: str, library: FunctionLibrary) -> NodeProperties | None:
        for end in (i for i, letter in enumerate(name) if letter == "/"):
            if name[:end] in self.root:
                found = _find_below(self._kinds[self.root[name[:end]]], name[end + 1 :], library)
                if found is not None:
                    return found
        return None

    def arguments(self) -> dict[TensorId, str]:
        """The names of the nodes that stand for fed tensors."""
        args = [name for name, kind in self.root.items() if self._kinds[kind].op == "_Arg"]
        return {tensor: name for name in args if (tensor := fed_tensor(name)) is not None}

    def by_bare_name(self) -> dict[str, list[str]]:
        """The paths of all nodes in functions, by their names there; without functions that may call themselves."""
        paths: defaultdict[str, list[str]] = defaultdict(list)
        if self._library is not None:
            for name, kind in self.root.items():
                for path in _paths_below(name, self._kinds[kind], self._library):
                    paths[path.rpartition("\0")[2]].append(path.replace("\0", "/"))
        return dict(paths)


def _bodies(kind: NodeProperties, library: FunctionLibrary) -> Iterator[Mapping[str, NodeProperties]]:
    """The nodes of each function that a node may call."""
    if not calls_functions(kind, library):
        return
    for function in called_by(kind, library):
        try:
            graph = instantiate_call(library, function).graph
        except PartitaError:  # the call would fail, so a trace has none of its nodes
            continue
        yield {node.name: node.properties for node in graph.op_nodes()}


def _find_below(kind: NodeProperties, name: str, library: FunctionLibrary) -> NodeProperties | None:
    for body in _bodies(kind, library):
        if name in body:
            return body[name]
        for end in (i for i, letter in enumerate(name) if letter == "/"):
            if name[:end] in body:
                found = _find_below(body[name[:end]], name[end + 1 :], library)
                if found is not None:
                    return found
    return None


def _paths_below(path: str, kind: NodeProperties, library: FunctionLibrary) -> Iterator[str]:
    """The paths of the nodes in the functions that a node calls, with "\\0" between the names of calls."""
    if not calls_functions(kind, library):
        return
    if any(library.may_call_itself(function.name) for function in called_by(kind, library)):
        return
    for body in _bodies(kind, library):
        for name, inner in body.items():
            yield f"{path}\0{name}"
            yield from _paths_below(f"{path}\0{name}", inner, library)


def _of_feed(run: TracedRun, arguments: Mapping[TensorId, str], names: Container[str]) -> TracedRun:
    """The run of an argument under the name that the fed tensor has here: of its argument, or of its own node."""
    tensor = fed_tensor(run.node)
    if tensor is None:
        return run
    if tensor in arguments:
        return run._replace(node=arguments[tensor])
    if tensor.node not in names:
        return run
    return run._replace(node=tensor.node, shapes={tensor.index + slot: shape for slot, shape in run.shapes.items()})


def with_paths(runs: Sequence[TracedRun], nodes: CalledNodes) -> list[TracedRun]:
    """The runs under the names of this graph: paths of calls for bare names, arguments with their numbers here."""
    bare = nodes.by_bare_name() if any(run.iteration is None for run in runs) else {}
    arguments = nodes.arguments()
    count = Counter(run.node for run in runs if run.node not in nodes.root)
    begun: Counter[str] = Counter()
    named = []
    for run in runs:
        paths = bare.get(run.node) if run.node in count else None
        if run.op == "_Arg" and run.node not in nodes.root:
            run = _of_feed(run, arguments, nodes.root)
        elif paths:
            turn, begun[run.node] = begun[run.node], begun[run.node] + 1
            run = run._replace(node=paths[turn * len(paths) // max(count[run.node], len(paths))])
        named.append(run)
    return named
