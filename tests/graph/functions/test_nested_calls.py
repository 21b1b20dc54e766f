"""Calls nested deeper than Python nests its own are imported, inferred, inlined and searched for recursion."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.graph import infer_shapes
from partita.graph.checked_import import import_graph_def
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.library.function_library import FunctionLibrary
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.protos import FunctionDef, FunctionDefLibrary
from tests.actors.call_chains import WAYS, chain, frames_left

DEEP, FRAMES = 120, 100  # fewer frames than one for each call


@pytest.mark.parametrize("way", WAYS)
def test_a_chain_of_calls_is_imported_and_its_shapes_are_inferred(way: str) -> None:
    graph = Graph()
    infer_shapes(graph_def_to_graph(chain(2, way)))  # imports what is imported when it is first needed
    with frames_left(FRAMES):
        import_graph_def(chain(DEEP, way), graph)
        shapes = infer_shapes(graph)["y"]
    assert shapes == ((),) if way in ("PartitionedCall", "StatefulPartitionedCall", "own") else len(shapes) == 1


def test_a_chain_of_calls_is_inlined() -> None:
    lower_functional(graph_def_to_graph(chain(2)), inline_calls=True)
    graph = graph_def_to_graph(chain(DEEP))
    with frames_left(FRAMES):
        lowered = lower_functional(graph, inline_calls=True)
    assert sum(node.op == "AddN" for node in lowered.op_nodes()) == DEEP


def test_shapes_are_inferred_once_for_calls_that_are_alike() -> None:
    """2**60 calls are too many to walk each."""
    assert infer_shapes(graph_def_to_graph(chain(60, calls=2, beside=True)))["y"] == ((),)


@st.composite
def libraries(draw: st.DrawFn) -> dict[str, list[tuple[str, bool]]]:
    """Functions by name, and what each calls: a function, or the gradient of one."""
    names = [f"F{k}" for k in range(draw(st.integers(1, 6)))]
    call = st.tuples(st.sampled_from(names), st.booleans())
    return {name: draw(st.lists(call, max_size=3)) for name in names}


@given(libraries(), st.data())
def test_recursion_is_found_as_a_search_from_every_function_finds_it(
    calls: dict[str, list[tuple[str, bool]]], data: st.DataObject
) -> None:
    """A gradient calls what its function calls, and the gradients of all that."""
    message = FunctionDefLibrary()
    for name, called in calls.items():
        function = FunctionDef()
        function.signature.name = name
        for k, (other, is_gradient) in enumerate(called):
            node = function.node_def.add(name=f"n{k}", op="SymbolicGradient" if is_gradient else "PartitionedCall")
            node.attr["f"].func.name = other
        message.function.append(function)
    library = FunctionLibrary(message)

    def following(name: str, gradient: bool) -> set[tuple[str, bool]]:
        if not gradient:
            return set(calls[name])
        return {(other, of_it) for other, _ in calls[name] for of_it in (False, True)}

    def reaches_itself(start: tuple[str, bool]) -> bool:
        reached: set[tuple[str, bool]] = set()
        waiting = set(following(*start))
        while waiting:
            reached.add(vertex := waiting.pop())
            waiting |= following(*vertex) - reached
        return start in reached

    for name in data.draw(st.permutations(list(calls))):
        for gradient in (False, True):
            assert library.may_call_itself(name, gradient=gradient) == reaches_itself((name, gradient))
    assert not library.may_call_itself("unknown")
