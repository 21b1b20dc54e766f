"""Lowering and inlining keep what a graph computes, and the names that can be fetched.

Random graphs are made into functions, and called through every op that calls. Each is run as TensorFlow's session runs
it, lowered, and compared bit for bit with the graph without functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from partita.actors.sessions.local_session import open_session
from partita.errors import InvalidArgumentError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.printer import graph_text
from partita.graph.protos import AttrValue, ConfigProto, FunctionDef, GraphDef, NameAttrList
from tests.function_defs import LOWER, calling, func_attr, function_of
from tests.goldens import assert_file, assert_text
from tests.runs import assert_same_values, cpus, values
from tests.strategies import GraphCase, placed_cases

INLINE = ConfigProto(allow_soft_placement=False)
INLINE.graph_options.optimizer_options.do_function_inlining = True
TRUE = AttrValue(b=True)
DATA = Path(__file__).parent / "data"


async def run(
    graph_def: GraphDef, feeds: Sequence[Array], fetches: Sequence[str], targets: Sequence[str] = ()
) -> list[Array]:
    """The values that a session fetches after inlining everything, with `feeds` for x0, x1, ..."""
    async with open_session(graph_def, cpus(4), config=INLINE) as session:
        return await session.run(list(fetches), {f"x{k}:0": value for k, value in enumerate(feeds)}, list(targets))


def as_function(case: GraphCase, placement: dict[str, str], name: str = "F") -> FunctionDef:
    """The request of a case as a function: feeds are arguments, fetches results, targets must run."""
    return function_of(name, case.on(placement), list(case.feeds), case.fetches, case.targets)


def outputs(count: int) -> list[str]:
    """The tensors of node `c`."""
    return [f"c:{k}" for k in range(count)]


@given(placed_cases())
@settings(max_examples=20)
async def test_an_inlined_call_computes_what_the_graph_does(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """Over any devices, a request and the call of it as a function fetch the same values."""
    case, placement = placed
    assume(case.fetches)
    function = as_function(case, placement)
    graph_def = calling("PartitionedCall", function, f=func_attr("F")).graph_def()
    actual = await run(graph_def, list(case.feeds.values()), outputs(len(case.fetches)), ["c"])
    assert_same_values(actual, await values(case.on(placement), case))


@given(placed_cases(), placed_cases(), st.booleans())
@settings(max_examples=20)
async def test_a_lowered_conditional_runs_one_branch(
    placed: tuple[GraphCase, dict[str, str]], other: tuple[GraphCase, dict[str, str]], is_then: bool
) -> None:
    """An If computes what the branch taken computes; the other branch may be any function of the same types."""
    case, placement = placed
    assume(case.fetches)
    function = as_function(case, placement)
    unused = constants_like(function)
    branches = {"then_branch": func_attr("F"), "else_branch": func_attr("G")}
    if not is_then:
        branches = {"then_branch": func_attr("G"), "else_branch": func_attr("F")}
    b = calling("StatelessIf", function, unused, first=[DataType.BOOL], **branches, **{LOWER: TRUE})
    feeds = [np.array(is_then), *case.feeds.values()]
    actual = await run(b.graph_def(), feeds, outputs(len(case.fetches)), ["c"])
    assert_same_values(actual, await values(case.on(placement), case))


def constants_like(like: FunctionDef) -> FunctionDef:
    """The function `G` that takes what another takes and gives a constant for each of its results."""
    function = FunctionDef(signature=like.signature)
    function.signature.name = "G"
    del function.signature.control_output[:]
    for result in function.signature.output_arg:
        node = function.node_def.add(name=f"const_{result.name}", op="Const")
        node.attr["dtype"].type = result.type
        node.attr["value"].tensor.dtype = result.type
        node.attr["value"].tensor.tensor_shape.SetInParent()
        node.attr["value"].tensor.float_val.append(7.0)
        function.ret[result.name] = f"{node.name}:output:0"
    return function


def step() -> FunctionDef:
    """(i, x) -> (i + 1, x * 2 + i), the body of a loop."""
    b = GraphBuilder()
    i, x = b.placeholder("i", "int32"), b.placeholder("x", "float32")
    b.op("AddV2", i, 1, name="next")
    with b.device("/device:CPU:1"):
        b.op("AddV2", b.op("Mul", x, 2.0), b.op("Cast", i, DstT="float32"), name="y")
    return function_of("Body", b.graph_def(), ["i:0", "x:0"], ["next:0", "y:0"])


def below(limit: int) -> FunctionDef:
    """(i, x) -> i < limit, the condition of a loop."""
    b = GraphBuilder()
    i, _ = b.placeholder("i", "int32"), b.placeholder("x", "float32")
    b.op("Less", i, limit, name="less")
    return function_of("Cond", b.graph_def(), ["i:0", "x:0"], ["less:0"])


def loop(limit: int) -> GraphDef:
    """A While that counts to `limit`."""
    b = GraphBuilder()
    for function in (step(), below(limit)):
        b.function(function)
    state = [b.placeholder("x0", "int32"), b.placeholder("x1", "float32")]
    b.op("StatelessWhile", state, name="c", attrs={"cond": func_attr("Cond"), "body": func_attr("Body"), LOWER: TRUE})
    return b.graph_def()


@pytest.mark.parametrize("limit", [0, 1, 2, 7])
async def test_a_lowered_loop_runs_its_body(limit: int) -> None:
    """The body runs as long as the condition holds, each time on the results of the time before."""
    expected = np.array([1.0, -2.0], np.float32)
    for number in range(limit):
        expected = expected * np.float32(2) + np.float32(number)
    i, x = await run(loop(limit), [np.array(0, np.int32), np.array([1.0, -2.0], np.float32)], ["c:0", "c:1"])
    assert i == limit
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
async def test_a_lowered_case_runs_one_branch(index: int) -> None:
    """A Case computes the branch of that number, and the last one for numbers that no branch has."""
    (value,) = await run(case_of_three(), [np.array(index, np.int32), np.array(-3.0, np.float32)], ["c"])
    assert value == [3.0, 9.0, 3.0][{0: 0, 1: 1}.get(index, 2)]


def case_of_three() -> GraphDef:
    """A Case that negates, squares or takes the absolute value."""
    b = GraphBuilder()
    for k, op in enumerate(("Neg", "Square", "Abs")):
        inner = GraphBuilder()
        inner.op(op, inner.placeholder("x", "float32"), name="y")
        b.function(function_of(f"B{k}", inner.graph_def(), ["x:0"], ["y:0"]))
    branches = AttrValue()
    branches.list.func.extend(NameAttrList(name=f"B{k}") for k in range(3))
    chosen, x = b.placeholder("x0", "int32"), b.placeholder("x1", "float32")
    b.op("StatelessCase", chosen, [x], name="c", attrs={"branches": branches, "Tout": ["float32"], LOWER: TRUE})
    return b.graph_def()


def conditional() -> GraphDef:
    """An If of two branches, each of them with a node on another device, between two nodes that wait."""
    b = calling(
        "StatelessIf",
        step(),
        constants_like(step()),
        first=[DataType.BOOL],
        then_branch=func_attr("Body"),
        else_branch=func_attr("G"),
        **{LOWER: TRUE},
    )
    graph_def = b.graph_def()
    graph_def.node.add(name="before", op="NoOp")
    graph_def.node.add(name="after", op="NoOp", input=["^c"])
    next(node for node in graph_def.node if node.name == "c").input.append("^before")
    return graph_def


def lowered(graph_def: GraphDef) -> Graph:
    """The graph lowered, calls inlined."""
    return lower_functional(graph_def_to_graph(graph_def, add_default_attrs=True), inline_calls=True)


@pytest.mark.parametrize(
    ("file", "graph_def"), [("loop", loop(3)), ("conditional", conditional()), ("case", case_of_three())]
)
def test_the_nodes_of_lowered_control_flow(file: str, graph_def: GraphDef) -> None:
    """Names, edges, devices and groups; what waits for an If waits for the branch that runs."""
    assert_file(lowered(graph_def), DATA / f"lowered_{file}.txt")


def test_what_needs_no_lowering_comes_back_itself() -> None:
    """Without functions, or with calls that stay, the result is the same object."""
    b = calling("PartitionedCall", step(), f=func_attr("Body"))
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    assert lower_functional(graph) is graph
    assert lower_functional(Graph()).num_nodes == 2


def test_a_function_inside_itself_stays_a_call() -> None:
    """Lowering stops at a recursive call: whether the recursion ends is only known when it runs."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32"), name="y")
    function = function_of("F", b.graph_def(), ["x:0"], ["y:0"])
    function.node_def[0].op = "PartitionedCall"
    for attr in ("Tin", "Tout"):
        function.node_def[0].attr[attr].CopyFrom(encode(["float32"], "list(type)"))
    del function.node_def[0].attr["T"]
    function.node_def[0].attr["f"].CopyFrom(func_attr("F"))
    function.ret["r0"] = "y:output:0"
    assert_text(
        lowered(calling("PartitionedCall", function, f=func_attr("F")).graph_def()),
        """
        6 nodes
        x0: float = Placeholder()
        Func/c/input/_0: float = Identity(x0) {_class=["loc:@x0"]}
        c/y: float = PartitionedCall(Func/c/input/_0) {f=F[]}
        Func/c/output/_1: float = Identity(c/y) {_class=["loc:@c/y"]}
        Func/c/output_control_node/_2 = NoOp()
        c: float = IdentityN(Func/c/output/_1, ^Func/c/output_control_node/_2)
        functions: F
        """,
    )


def test_the_body_of_a_function_keeps_names_for_control_only() -> None:
    """Nothing is fetched from the body of a function: its loops leave a NoOp, not an IdentityN."""
    graph = graph_def_to_graph(loop(1), add_default_attrs=True)
    graph.add_node("a", "_Arg", {"T": DataType.FLOAT, "index": 0})
    assert_text(
        graph_text(lower_functional(graph), only=lambda name: name == "c"),
        """
        1 of 38 nodes
        c = NoOp(^c/LoopExecuted/_12)
        functions: Body, Cond
        """,
    )


def test_calls_of_functions_that_are_not_there() -> None:
    """Every call of a graph must name a function it has, also one that no request needs; in a body it may never run."""
    graph_def = calling("PartitionedCall", step(), f=func_attr("Other")).graph_def()
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    with pytest.raises(InvalidArgumentError, match='Failed to find function "Other" in function library'):
        lower_functional(graph)
    graph.add_node("a", "_Arg", {"T": DataType.FLOAT, "index": 0})
    assert lower_functional(graph, inline_calls=True).find_node("c") is not None


def test_conditionals_whose_branches_do_not_fit() -> None:
    """A branch that takes other types is refused by the name of the call that lowering makes."""
    b = calling(
        "If", step(), below(1), first=[DataType.BOOL], then_branch=func_attr("Body"), else_branch=func_attr("Nope")
    )
    graph_def = b.graph_def()
    next(node for node in graph_def.node if node.name == "c").attr[LOWER].b = True
    with pytest.raises(InvalidArgumentError, match="while building NodeDef 'c/else/_1'"):
        lower_functional(graph_def_to_graph(graph_def, add_default_attrs=True))


def test_lowering_twice_changes_nothing_more() -> None:
    """The second pass gives back the very same graph."""
    once = lowered(loop(3))
    assert lower_functional(once, inline_calls=True) is once


def test_the_nodes_of_a_loop_variable_are_where_its_first_value_is_placed_already() -> None:
    """As the requested device, so the assigned one; other nodes of the loop have none."""
    graph = graph_def_to_graph(loop(3), add_default_attrs=True)
    (node,) = [node for node in graph.op_nodes() if node.op == "StatelessWhile"]
    homes = [f"/job:localhost/replica:0/task:0/device:CPU:{k}" for k in range(len(node.input_types))]
    sources = [edge.src for edge in node.input_edges()]
    for source, home in zip(sources, homes, strict=True):
        source.assigned_device = home
    lowered = lower_functional(graph)
    expected = {source.name: source.assigned_device for source in sources}
    for op in ("Enter", "Merge", "Switch", "NextIteration", "Exit"):
        nodes = [n for n in lowered.op_nodes() if n.op == op]
        assert [n.assigned_device for n in nodes] == list(expected.values()), op
    assert not any(n.assigned_device for n in lowered.op_nodes() if n.op in ("LoopCond", "NoOp"))


def loop_of_a_handle(*, is_returned: bool) -> Graph:
    """A loop whose only variable is a handle; the body returns it, or an Identity of it."""
    functions = []
    for name in ("Cond", "Body"):
        b = GraphBuilder()
        argument = b.placeholder("h", "resource", ())
        result = b.constant(np.bool_(False)) if name == "Cond" else argument if is_returned else b.identity(argument)
        functions.append(function_of(name, b.graph_def(), ["h:0"], [result.name]))
    attrs: dict[str, Any] = {
        "T": encode([DataType.RESOURCE], "list(type)"),
        "cond": func_attr("Cond"),
        "body": func_attr("Body"),
    }
    graph_def = calling("While", functions[1], functions[0], **attrs).graph_def()
    next(node for node in graph_def.node if node.name == "c").attr[LOWER].b = True
    return graph_def_to_graph(graph_def, add_default_attrs=True)


def test_only_a_handle_that_the_body_returns_as_it_is_is_a_loop_constant() -> None:
    """A loop of constants alone is refused: TensorFlow's process ends."""
    lowered = lower_functional(loop_of_a_handle(is_returned=False))
    (enter,) = [node for node in lowered.op_nodes() if node.op == "Enter"]
    assert not enter.attr("is_constant")
    with pytest.raises(InvalidArgumentError, match="none of the loop's variables can change"):
        lower_functional(loop_of_a_handle(is_returned=True))
