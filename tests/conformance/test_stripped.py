"""Graphs without default attrs, which TensorFlow leaves out of files, mean the same as with them.

Attrs that equal their op's default are removed from the graphs of the corpus, in functions too. Shapes, partitions and
fetched values stay the same, whether the import adds defaults or not.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita.actors.sessions.local_session import open_session
from partita.errors import NotFoundError, PartitaError
from partita.graph import Graph, GraphDef, graph_def_to_graph, partition
from partita.graph.attrs import attr_values_equal
from partita.graph.graphdef.default_attrs import graph_lookup
from partita.graph.protos import AttrValue, NodeDef
from partita.graph.shape_inference.infer import Shapes, infer_shapes
from tests.conformance.corpus import Case, cases
from tests.conformance.test_values import check_close, fed
from tests.runs import HARD_PLACEMENT, cpus, run_one

FAMILIES = ("elementary", "random", "models", "control_flow", "gpu_partition", "functions")
CASES = [case for family in FAMILIES for case in cases(family)]
RUN = [case for family in ("control_flow", "functions") for case in cases(family)]


def nodes_of(graph_def: GraphDef) -> Iterator[NodeDef]:
    """All nodes, with those of functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def stripped(graph_def: GraphDef) -> GraphDef:
    """The graph without attrs that equal the default of their op."""
    bare = GraphDef.FromString(graph_def.SerializeToString())
    find = graph_lookup(bare)
    for node in nodes_of(bare):
        try:
            defaults = find(node.op).defaults
        except NotFoundError:
            continue
        for name in list(node.attr):
            if name in defaults and attr_values_equal(node.attr[name], AttrValue.FromString(defaults[name])):
                del node.attr[name]
    return bare


Part = list[tuple[str, str, str, list[str]]]


def parts(graph: Graph) -> dict[str, Part] | str:
    """The nodes of all partitions, or the error."""
    graph.assign_devices(graph.requested_device_indices())
    try:
        cut = partition(graph)
    except PartitaError as error:
        return error.message
    return {device: [(n.name, n.op, n.device, list(n.input)) for n in part.node] for device, part in cut.items()}


def shapes(graph: Graph) -> dict[str, Shapes] | str:
    """The shapes of all tensors, or the error."""
    try:
        return infer_shapes(graph)
    except PartitaError as error:
        return error.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
@pytest.mark.parametrize("filled_in", [False, True], ids=["as it is", "defaults filled in"])
def test_partitions_and_shapes_are_the_same(case: Case, filled_in: bool) -> None:
    """A missing attr reads as its default everywhere."""
    whole = graph_def_to_graph(case.graph_def(), add_default_attrs=True)
    bare = graph_def_to_graph(stripped(case.graph_def()), add_default_attrs=filled_in)
    assert [(n.name, n.input_types, n.output_types) for n in bare.op_nodes()] == [
        (n.name, n.input_types, n.output_types) for n in whole.op_nodes()
    ]
    assert shapes(bare) == shapes(whole)
    assert parts(bare) == parts(whole)


@pytest.mark.parametrize("case", RUN, ids=lambda case: case.path)
async def test_values_are_the_same(case: Case) -> None:
    """With loops and functions, whose bodies get no defaults from sessions."""
    async with open_session(stripped(case.graph_def()), cpus(len(case.devices)), config=HARD_PLACEMENT) as session:
        for step in case.steps():
            values = await run_one(session, fed(case, step), step.fetches, step.targets)
            for name, key, value in zip(step.fetches, step.expected, values, strict=True):
                check_close(case, name, value, case.expected[key])


def test_there_is_something_to_strip() -> None:
    """The corpus has loops and functions, and most of its cases have default attrs."""
    changed = [case for case in CASES if stripped(case.graph_def()) != case.graph_def()]
    assert len(changed) > len(CASES) // 2
    assert {"control_flow", "functions"} <= {case.path.partition("/")[0] for case in changed}
