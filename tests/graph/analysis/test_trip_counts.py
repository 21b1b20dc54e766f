"""How often loops run is found in graphs that TensorFlow 2.21 wrote, and for counters of any start, step and limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from partita.devices import cut
from partita.graph import Graph, GraphDef
from partita.graph.analysis.counters import COUNTERS, Number, Truth, either, negated
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.analysis.known_values import KnownValues
from partita.graph.analysis.loop_values import loop_values
from partita.graph.analysis.trip_counts import Count, TripCounts, first_turns
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from partita.graph.graphdef.files import load_graph_def
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.shape_inference.infer import infer_joined
from partita.graph.structured import while_loop

LOOPS = Path(__file__).parent.parent / "data" / "loops"
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "Less": int.__lt__,
    "LessEqual": int.__le__,
    "Greater": int.__gt__,
    "GreaterEqual": int.__ge__,
    "NotEqual": int.__ne__,
    "Equal": int.__eq__,
}
PYRAMID = [1, 1, 2, 3, 1, 2, 3, 4, 5]
# Written by tf.while_loop, tf.map_fn, tf.gradients (v1), and tf.function, autograph, Keras, tf.GradientTape (v2).
COUNTS: dict[str, list[Count | None]] = {
    "v1_simple": [10],
    "v1_max": [5],
    "v1_map": [6],
    "v1_grad": [7, 7],
    "v1_nested": [5, [0, 1, 2, 3, 4]],
    "v2_for": [12],
    "v2_down": [5],
    "v2_max": [5],
    "v2_map": [6],
    "v2_rows": [6],
    "v2_lstm": [9],
    "v2_grad": [6, 6],
    "v2_nested": [5, [0, 1, 2, 3, 4]],
    "v2_break": [None],
    # Written by tools/make_gradient_loops.py.
    "v1_grad_rectangle": [4, 4, 3, 3],
    "v2_grad_rectangle": [4, 4, 3, 3],
    "v1_grad_triangle": [4, 4, [0, 1, 2, 3], [3, 2, 1, 0]],
    "v2_grad_triangle": [4, 4, [0, 1, 2, 3], [3, 2, 1, 0]],
    "v1_grad_pyramid": [3, 3, [1, 3, 5], [5, 3, 1], PYRAMID, PYRAMID[::-1]],
    "v2_grad_pyramid": [3, 3, [1, 3, 5], [5, 3, 1], PYRAMID, PYRAMID[::-1]],
    "v2_emptied": [7, 7],
}


def counts_of(parts: dict[str, Graph]) -> list[Count | None]:
    """The counts of all frames, outer ones first."""
    joined = JoinedGraph(parts)
    trips = TripCounts(joined, infer_joined(joined).values, {})
    return [trips.count(frame) for frame in range(1, len(trips.frames.all))]


def test_what_is_popped_counts_a_loop_as_it_was_pushed_also_where_the_count_is_given() -> None:
    """The inner backward loop has the counts that the forward loop is given, in reverse."""
    for name in ("v1_grad_rectangle", "v2_grad_rectangle"):
        joined = JoinedGraph(parts_of(load_graph_def(LOOPS / f"{name}.pb")))
        trips = TripCounts(joined, infer_joined(joined).values, {3: [2, 0, 5, 1]})
        assert trips.count(4) == [1, 5, 0, 2]


def parts_of(graph_def: GraphDef, cluster: str = "cpu:1") -> dict[str, Graph]:
    """The partitions with everything fed that is a placeholder."""
    names = {node.name for node in graph_def.node}
    feeds = [node.name for node in graph_def.node if node.op == "Placeholder"]
    return cut(graph_def, cluster, feeds=feeds, fetches=["y" if "y" in names else "Identity"], inline=True)


@pytest.mark.parametrize("name", COUNTS)
def test_loops_of_tensorflow_are_counted(name: str) -> None:
    """Lowered, and inlined."""
    assert counts_of(parts_of(load_graph_def(LOOPS / f"{name}.pb"))) == COUNTS[name]


@pytest.mark.parametrize("name", [name for name in COUNTS if name.startswith("v2")])
def test_functional_loops_have_the_count_of_lowered_ones(name: str) -> None:
    """From the functions of a While, without lowering it; inner ones depend on the outer one."""
    graph = graph_def_to_graph(load_graph_def(LOOPS / f"{name}.pb"), add_default_attrs=True)
    joined = JoinedGraph({"": graph})
    known = KnownValues(joined, infer_joined(joined).values, {})
    loops = [n for n, op in enumerate(map(joined.op, range(len(joined)))) if op in ("While", "StatelessWhile")]
    starts = [[known.value(source) for source in joined.inputs_of(n)] for n in loops]
    found = [
        loop_values(joined.properties[n], graph.functions, values).count
        for n, values in zip(loops, starts, strict=True)
    ]
    assert found[:1] == COUNTS[name][:1]


@given(
    st.integers(-20, 20), st.integers(-20, 20), st.integers(-4, 4), st.sampled_from(sorted(COMPARISONS)), st.booleans()
)
def test_a_counter_is_counted_in_closed_form(start: int, limit: int, step: int, op: str, crossed: bool) -> None:
    """As Python counts it; a loop without end has no count. Also if the predicate comes from another device."""
    b = GraphBuilder()

    def body(i: Tensor, x: Tensor) -> list[Tensor]:
        with b.device("/device:CPU:1" if crossed else "/device:CPU:0"):
            return [i + step, b.op("Neg", x)[0]]

    i, _ = while_loop(b, lambda i, _: b.op(op, i, limit), body, [start, 1.0])
    b.identity(i, name="y")
    expected, value = 0, start
    while COMPARISONS[op](value, limit):
        value, expected = value + step, expected + 1
        if expected > 50:
            return  # for ever, or until the integer overflows
    assert counts_of(parts_of(b.graph_def(), "cpu:2")) == [expected]


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 12))
def test_comparisons_of_lines_hold_where_their_values_say(a: int, b: int, c: int, d: int, i: int) -> None:
    """In every iteration, negated and joined too."""
    first, second = Number(a, c), Number(b, d)
    for op, compare in COMPARISONS.items():
        truth = COUNTERS[op]([first, second].__getitem__, DataType.BOOL)
        assert isinstance(truth, Truth)
        expected = compare(a + c * i, b + d * i)
        assert truth.at(i) == negated(negated(truth)).at(i)
        assert bool(truth.at(i).holds) is expected
        assert bool(negated(truth).at(i).holds) is not expected
        assert bool(either(truth, negated(truth)).at(i).holds)


@pytest.mark.parametrize(("step", "expected"), [(1, 10**9), (0, None)])
def test_a_long_loop_is_counted_without_running_it(step: int, expected: int | None) -> None:
    """A thousand million iterations; a step of zero has no end and no count."""
    b = GraphBuilder()
    (i,) = while_loop(b, lambda i: b.op("Less", i, 10**9), lambda i: i + step, [0])
    b.identity(i, name="y")
    assert counts_of(parts_of(b.graph_def())) == [expected]


def test_turns_number_the_iterations_of_all_activations() -> None:
    """In the order of a sequential program."""
    assert first_turns(3, 2) == [0, 3, 6]
    assert first_turns([0, 1, 2], 3) == [0, 0, 1, 3]
