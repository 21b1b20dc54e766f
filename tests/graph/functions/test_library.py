"""Libraries: names mean one thing, merging loses nothing, and what is reachable is exactly what is needed."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.checked_import import import_graph_def
from partita.graph.dtypes import DataType
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.library.function_library import FunctionLibrary
from partita.graph.protos import FunctionDef, FunctionDefLibrary, GraphDef
from tests.function_defs import func_attr, function_of, library_of


def negative(name: str, op: str = "Neg") -> FunctionDef:
    """A function of one float."""
    b = GraphBuilder()
    b.op(op, b.placeholder("x", "float32"), name="y")
    return function_of(name, b.graph_def(), ["x:0"], ["y:0"])


def calling_each(name: str, called: list[str]) -> FunctionDef:
    """A function that calls others, one after the other: as ops, and by attr in turns."""
    function = negative(name)
    last = "a0"
    for k, other in enumerate(called):
        node = function.node_def.add(name=f"n{k}", op=other if k % 2 else "PartitionedCall", input=[last])
        if k % 2 == 0:
            node.attr["f"].CopyFrom(func_attr(other))
            for attr in ("Tin", "Tout"):
                node.attr[attr].CopyFrom(encode([DataType.FLOAT], "list(type)"))
        last = f"n{k}:r0:0" if k % 2 else f"n{k}:output:0"
    function.ret["r0"] = last
    return function


@st.composite
def call_graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Which function calls which; calls may go round in circles."""
    names = [f"F{k}" for k in range(draw(st.integers(1, 6)))]
    return {name: draw(st.lists(st.sampled_from(names), max_size=3)) for name in names}


@given(call_graphs(), st.data())
def test_reachable_is_closed_and_no_more(calls: dict[str, list[str]], data: st.DataObject) -> None:
    """Everything reachable is found, in the order of the library, and nothing else."""
    library = FunctionLibrary(library_of(*(calling_each(name, called) for name, called in calls.items())))
    roots = data.draw(st.lists(st.sampled_from(list(calls)), max_size=2))
    expected, waiting = set(), list(roots)
    while waiting:
        name = waiting.pop()
        if name not in expected:
            expected.add(name)
            waiting += calls[name]
    reachable = library.reachable([*roots, "Neg"])
    assert [f.signature.name for f in reachable.message.function] == [name for name in calls if name in expected]
    assert all(reachable.find(name) == library.find(name) for name in expected)


def test_a_gradient_is_needed_by_its_function() -> None:
    """The function that computes the gradient of a reachable one is reachable."""
    library = FunctionLibrary(library_of(negative("F"), negative("G"), negative("H"), gradients={"F": "G"}))
    assert library.gradient_of("F") == "G"
    assert library.gradient_of("H") == ""
    reachable = library.reachable(["F"])
    assert [f.signature.name for f in reachable.message.function] == ["F", "G"]
    assert reachable.gradient_of("F") == "G"


def test_merging() -> None:
    """Equal functions are merged; the libraries are unchanged."""
    old = FunctionLibrary(library_of(negative("F")))
    assert old.merged(FunctionDefLibrary()) is old
    new = old.merged(library_of(negative("F"), negative("G"), negative("G"), gradients={"F": "G"}))
    assert [f.signature.name for f in new.message.function] == ["F", "G"]
    assert new.gradient_of("F") == "G"
    assert len(old) == 1
    assert old.gradient_of("F") == ""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (library_of(negative("F", "Abs")), "Cannot add function 'F' because a different function"),
        (library_of(negative("Neg")), "Cannot add function 'Neg' because an op with the same name"),
        (library_of(negative("G"), negative("G", "Abs")), "Cannot add function 'G' because a different function"),
        (library_of(gradients={"F": "H"}), "Cannot assign gradient function 'H' to 'F'"),
    ],
)
def test_a_name_has_one_meaning(more: FunctionDefLibrary, message: str) -> None:
    """Another function of a known name, an op's name, another gradient: all refused."""
    library = FunctionLibrary(library_of(negative("F"), gradients={"F": "G"}))
    with pytest.raises(InvalidArgumentError, match=message):
        library.merged(more)


def test_functions_are_ops_of_later_imports() -> None:
    """A graph may be extended by nodes whose op is a function that it has already."""
    graph = Graph(library_of(negative("F")))
    more = GraphDef()
    more.node.add(name="x", op="Placeholder").attr["dtype"].CopyFrom(encode(DataType.FLOAT, "type"))
    more.node.add(name="c", op="F", input=["x"])
    import_graph_def(more, graph)
    node = graph.find_node("c")
    assert node is not None
    assert (node.op, len(node.output_types)) == ("F", 1)
    assert node.op_def is graph.copy().functions.lookup("F")


def test_unknown_names() -> None:
    """What is neither a function nor an op is not found, by import or look-up."""
    library = FunctionLibrary(library_of(negative("F")))
    assert library.find("G") is None
    assert library.signature("G") is None
    assert library.needs("G") == frozenset()
    assert library.lookup("Neg").name == "Neg"
    with pytest.raises(NotFoundError, match="Op type not registered 'G'"):
        library.lookup("G")
    with pytest.raises(NotFoundError):
        graph_def_to_graph(GraphDef(node=[{"name": "c", "op": "G"}]))
