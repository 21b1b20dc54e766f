"""Common subexpressions: who is merged, who stays, and who survives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.passes.cse import merge_common_subexpressions
from tests.graph.passes.evaluator import nodes_of


def test_whole_expressions_are_merged_into_the_first_that_is_visited() -> None:
    """Consumers of the duplicates read the survivor, control edges included."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    for name in "ab":
        b.op("Neg", b.op("Abs", x, name=f"abs_{name}"), name=f"neg_{name}")
        b.op("Print", x, [x], name=f"after_{name}", control=[f"neg_{name}"])
    graph = b.graph()
    nodes = nodes_of(merge_common_subexpressions(graph))
    (neg,) = (name for name in nodes if name.startswith("neg"))
    assert nodes[neg] == ["Neg", neg.replace("neg", "abs")]
    assert nodes["after_a"] == nodes["after_b"] == ["Print", "x", "x", f"^{neg}"]
    assert len(nodes_of(graph)) == 7


def test_the_order_of_inputs_matters_only_where_the_op_says_so() -> None:
    """Sums are merged either way round, differences are not."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32", ()), b.placeholder("y", "float32", ())
    for op in ("AddV2", "Sub"):
        b.op(op, x, y, name=f"{op}_xy")
        b.op(op, y, x, name=f"{op}_yx")
    ops = [node[0] for node in nodes_of(merge_common_subexpressions(b.graph())).values()]
    assert (ops.count("AddV2"), ops.count("Sub")) == (1, 2)


def test_what_must_not_be_merged_stays() -> None:
    """Placeholders, random and variable ops, readers of references, and nodes that differ in an attr of any kind."""
    b = GraphBuilder()
    b.placeholder("p", "float32", ())
    b.placeholder("q", "float32", ())
    shape = b.constant([2], "int32", name="shape")
    variable = b.variable("v", "float32", ())
    for name in "ab":
        b.op("RandomUniform", shape, name=f"random_{name}", dtype=DataType.FLOAT)
        b.op("RefIdentity", variable, name=f"ref_{name}")
        b.op("Abs", b.constant(1.0, name=f"one_{name}"), name=f"abs_{name}", attrs={"_where": name})
    left = nodes_of(merge_common_subexpressions(b.graph()))
    ops = [node[0] for node in left.values()]
    assert {op: ops.count(op) for op in set(ops)} == {
        "Placeholder": 2,
        "Const": 2,  # one_a and one_b are merged
        "VariableV2": 1,
        "RandomUniform": 2,
        "RefIdentity": 2,
        "Abs": 2,
    }


def test_devices_do_not_keep_nodes_apart_but_control_inputs_do() -> None:
    """Of three equal nodes the one that waits for something else stays, and so does every later one like it."""
    b = GraphBuilder()
    x, gate = b.placeholder("x", "float32", ()), b.op("NoOp", name="gate")
    b.op("Neg", x, name="here", device="/cpu:0")
    b.op("Neg", x, name="there", device="/cpu:1")
    b.op("Neg", x, name="late", control=[gate])
    b.op("Neg", x, name="later", control=[gate])
    left = {name for name, node in nodes_of(merge_common_subexpressions(b.graph())).items() if node[0] == "Neg"}
    assert left == {"here", "late", "later"}


def test_a_graph_without_duplicates_is_given_back_as_it_is() -> None:
    """The very same object, also where only the order of inputs differs."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32", ()), b.placeholder("y", "float32", ())
    _ = x - y, y - x, x + y
    graph = b.graph()
    assert merge_common_subexpressions(graph) is graph


def test_only_nodes_that_are_to_be_considered_are_merged() -> None:
    """A node that is not, is not a survivor either."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    for name in ("a", "b", "keep"):
        b.op("Neg", x, name=name)
    left = nodes_of(merge_common_subexpressions(b.graph(), lambda node: node.name != "keep"))
    assert "keep" in left
    assert len(left) == 3


@given(st.lists(st.tuples(st.sampled_from(("AddV2", "Sub")), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_no_two_nodes_that_are_left_compute_the_same(steps: list[tuple[str, int, int]]) -> None:
    """And every value is still computed by one of them."""
    b = GraphBuilder()
    values = [b.placeholder("x", "float32", ()), b.placeholder("y", "float32", ())]
    meaning: list[str] = ["x", "y"]
    for op, i, j in steps:
        i, j = i % len(values), j % len(values)
        values.append(b.op(op, values[i], values[j])[0])
        parts = [meaning[i], meaning[j]]
        meaning.append(f"{op}({','.join(sorted(parts) if op == 'AddV2' else parts)})")
    left = nodes_of(merge_common_subexpressions(b.graph()))
    by_name = {tensor.node: text for tensor, text in zip(values, meaning, strict=True)}
    assert sorted(by_name[name] for name in left) == sorted(set(meaning))
