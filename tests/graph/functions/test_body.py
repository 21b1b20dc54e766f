"""Bodies of functions: the graph that a call gets, and errors of malformed definitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita.errors import InvalidArgumentError, NotFoundError, PartitaError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.functions.body import FunctionBody, instantiate
from partita.graph.library.function_library import FunctionLibrary
from partita.graph.protos import AttrValue, FunctionDef
from tests.function_defs import function_of, library_of


def polynomial() -> FunctionDef:
    """x * x + y, with a node without consumers and one that must run."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32"), b.placeholder("y", "float32")
    square = b.op("Mul", x, x, name="square")
    total = b.op("AddV2", square, y, name="total")
    b.op("Neg", y, name="unread")
    b.op("NoOp", name="must_run", control=[total])
    return function_of("F", b.graph_def(), ["x:0", "y:0"], ["total:0", "square:0"], ["must_run"])


def generic() -> FunctionDef:
    """n values of any type T, the last of them negated."""
    function = FunctionDef()
    function.signature.name = "G"
    function.signature.attr.add(name="T", type="type")
    function.signature.attr.add(name="n", type="int")
    function.signature.input_arg.add(name="xs", type_attr="T", number_attr="n")
    function.signature.output_arg.add(name="ys", type_attr="T", number_attr="n")
    node = function.node_def.add(name="copies", op="IdentityN", input=["xs"])
    node.attr["T"].placeholder = "types"
    function.ret["ys"] = "copies:output"
    return function


def body_of(function: FunctionDef, **attrs: AttrValue) -> FunctionBody:
    """The body of a function that is alone in its library."""
    return instantiate(FunctionLibrary(library_of(function)), function.signature.name, attrs)


def test_a_body_is_a_graph_between_arguments_and_results() -> None:
    """Nodes come in order; results read what the definition says; control results are among the nodes."""
    body = body_of(polynomial())
    assert [node.name for node in body.graph.op_nodes()][:2] == ["a0", "a1"]
    assert [(node.op, node.attr("index")) for node in body.arguments] == [("_Arg", 0), ("_Arg", 1)]
    assert [(node.op, node.input_edge(0).src.name) for node in body.results] == [
        ("_Retval", "total"),
        ("_Retval", "square"),
    ]
    assert [node.name for node in body.control_results] == ["must_run"]
    assert body.argument_types == body.result_types == (DataType.FLOAT, DataType.FLOAT)


def test_lists_become_single_nodes_and_attrs_are_bound() -> None:
    """An argument of n tensors is n nodes; a placeholder takes the attr of the call, nested in the node or not."""
    attrs = {
        "T": encode(DataType.INT32, "type"),
        "n": encode(2, "int"),
        "types": encode([DataType.INT32] * 2, "list(type)"),
    }
    body = body_of(generic(), **attrs)
    assert [node.name for node in body.graph.op_nodes()] == ["xs_0", "xs_1", "copies", "ys_RetVal_0", "ys_RetVal_1"]
    assert body.argument_types == (DataType.INT32, DataType.INT32)
    assert [edge.src.name for edge in body.graph.node(4).input_edges()] == ["xs_0", "xs_1"]
    assert [node.input_edge(0).src_output for node in body.results] == [0, 1]


def test_a_body_is_made_once() -> None:
    """Equal attrs give the same body, whatever other attrs the call has; different attrs another one."""
    library = FunctionLibrary(library_of(generic()))
    attrs_1, attrs_2 = ({"T": encode(DataType.FLOAT, "type"), "n": encode(n, "int")} for n in (1, 2))
    for attrs, n in ((attrs_1, 1), (attrs_2, 2)):
        attrs["types"] = encode([DataType.FLOAT] * n, "list(type)")
    first = instantiate(library, "G", attrs_1)
    assert instantiate(library, "G", {**attrs_1, "_note": encode(7, "int")}) is first
    assert instantiate(library, "G", attrs_2) is not first
    assert instantiate(library.reachable(["G"]), "G", attrs_1) is first


def test_missing_attrs() -> None:
    """A call must bind every attr that has no default."""
    with pytest.raises(NotFoundError, match="Attr T is not found from Op<name=G"):
        body_of(generic())
    with pytest.raises(InvalidArgumentError, match="Failed to bind all placeholders"):
        body_of(generic(), T=encode(DataType.FLOAT, "type"), n=encode(1, "int"))
    with pytest.raises(InvalidArgumentError, match="when 'type' expected"):
        body_of(generic(), T=encode(1, "int"), n=encode(1, "int"))
    with pytest.raises(NotFoundError, match="Function H is not defined"):
        instantiate(FunctionLibrary(library_of(generic())), "H")


def unknown_input(function: FunctionDef) -> None:
    """Reads a node that does not exist."""
    function.node_def[1].input[1] = "z"


def unknown_control_input(function: FunctionDef) -> None:
    """Waits for a node that does not exist."""
    function.node_def[1].input.append("^z")


def data_after_control(function: FunctionDef) -> None:
    """Has one input too many."""
    function.node_def[1].input.append("a0")


def too_few_inputs(function: FunctionDef) -> None:
    """Has one input too few."""
    del function.node_def[1].input[1]


def missing_result(function: FunctionDef) -> None:
    """Does not define a result."""
    del function.ret["r1"]


def unknown_result(function: FunctionDef) -> None:
    """Returns an output that does not exist."""
    function.ret["r1"] = "square:z:1"


def wrong_result_type(function: FunctionDef) -> None:
    """Returns another type than it declares."""
    function.signature.output_arg[1].type = DataType.INT32.value  # type: ignore[assignment]  # enum or its number


def wrong_input_type(function: FunctionDef) -> None:
    """Reads another type than its op takes."""
    function.signature.input_arg[1].type = DataType.INT32.value  # type: ignore[assignment]  # enum or its number


def twice(function: FunctionDef) -> None:
    """Has two nodes of one name."""
    function.node_def.add().CopyFrom(function.node_def[0])


def cycle(function: FunctionDef) -> None:
    """Waits for itself."""
    function.node_def[0].input[0] = "total:z:0"


def unknown_op(function: FunctionDef) -> None:
    """Has an unknown op."""
    function.node_def[0].op = "Nope"


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (unknown_input, "INVALID_ARGUMENT", "input z is not found: {{node total}}"),
        (unknown_control_input, "INVALID_ARGUMENT", "input[2] == '^z', is not found."),
        (data_after_control, "INVALID_ARGUMENT", "Expected input[2] == 'a0' to be a control input."),
        (too_few_inputs, "INVALID_ARGUMENT", "Attempt to access beyond input size: 1 >= 1"),
        (missing_result, "INVALID_ARGUMENT", "Return r1 missing."),
        (unknown_result, "INVALID_ARGUMENT", "Return r1 -> square:z:1 is not found."),
        (wrong_result_type, "INVALID_ARGUMENT", "Invalid ret types r1 : int32 vs. float"),
        (wrong_input_type, "INVALID_ARGUMENT", "input y[0] expected type float != int32, the type of a1[0]"),
        (twice, "INVALID_ARGUMENT", "Duplicated ret name: square:z"),
        (cycle, "INVALID_ARGUMENT", "nodes in a cycle"),
        (unknown_op, "NOT_FOUND", "Op type not registered 'Nope'"),
    ],
)
def test_what_makes_no_function(damage: Callable[[FunctionDef], None], code: str, message: str) -> None:
    """Every mistake in a definition is an error with TensorFlow's code and words."""
    function = polynomial()
    damage(function)
    with pytest.raises(PartitaError) as caught:
        body_of(function)
    assert caught.value.code == code
    assert message in caught.value.message


def test_what_a_definition_lists_too_much_is_passed_over() -> None:
    """A control result that is no node, a result that the signature lacks."""
    function = polynomial()
    function.control_ret["more"] = "z"
    function.ret["more"] = "z:y:0"
    plain = body_of(polynomial())
    body = body_of(function)
    assert body.graph.to_graph_def().node == plain.graph.to_graph_def().node
    assert [node.name for node in body.control_results] == [node.name for node in plain.control_results]


@pytest.mark.parametrize(
    ("declared", "attr", "message"),
    [
        ({"type_attr": "T"}, "", "type attr not found: T\n\tIn x:T"),
        ({"type_attr": "T", "number_attr": "N"}, "", "number attr not found: N\n\tIn x:N*T"),
        ({"type_list_attr": "L"}, "", "type list attr not found: L\n\tIn x:"),
        ({"type": "float32"}, "", "type attr not found: T\n\tIn {{node y}}"),
        ({"type": "float32"}, "int32", "input x[0] expected type int32 != float, the type of x[0]\n\tIn {{node y}}"),
    ],
)
def test_what_decides_types_must_be_there(declared: dict[str, str], attr: str, message: str) -> None:
    """TensorFlow 2.21 says which kind of attr is missing, and where."""
    function = FunctionDef()
    function.signature.name = "F"
    function.signature.input_arg.add(name="x")
    for name, value in declared.items():
        setattr(function.signature.input_arg[0], name, encode(value, "type").type if name == "type" else value)
    node = function.node_def.add(name="y", op="Neg", input=["x"])
    if attr:
        node.attr["T"].CopyFrom(encode(attr, "type"))
    with pytest.raises(PartitaError) as refused:
        body_of(function)
    assert refused.value.message == message
