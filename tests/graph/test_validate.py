"""The rules of a single node: first lines of all errors are those of TensorFlow 2.21, recorded from it."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.ops.attr_checks import check_type
from partita.graph.ops.registry import lookup_op, op_names
from partita.graph.ops.summaries import summarize_attr, summarize_op
from partita.graph.protos import AttrValue, NodeDef
from partita.graph.validate import (
    check_inputs,
    check_op_deprecation,
    summarize_node_def,
    validate_external_node_def_syntax,
    validate_node_def,
)

NEG = (
    "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_INT8, "
    "DT_INT16, DT_INT32, DT_INT64, DT_COMPLEX64, DT_COMPLEX128]>"
)
IDENTITY_N = "Op<name=IdentityN; signature=input: -> output:; attr=T:list(type),min=1>"


def node(text: str) -> NodeDef:
    """A node called b from the text of its other fields."""
    return text_format.Parse(f'name: "b" {text}', NodeDef())


def attr(text: str) -> AttrValue:
    """An attr value from text."""
    return text_format.Parse(text, AttrValue())


def error_of(text: str) -> str:
    """The validation error of a node."""
    parsed = node(text)
    with pytest.raises(InvalidArgumentError) as caught:
        validate_node_def(parsed, lookup_op(parsed.op))
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'op: "Neg" input: "x" attr { key: "T" value { i: 1 } }',
            "AttrValue had value with type 'int' when 'type' expected\n\t for attr 'T'\n\t; "
            f"NodeDef: {{{{node b}}}}; {NEG}",
        ),
        (
            'op: "Neg" input: "x" attr { key: "T" value { type: DT_STRING } }',
            "Value for attr 'T' of string is not in the list of allowed values: bfloat16, half, float, double, int8, "
            f"int16, int32, int64, complex64, complex128\n\t; NodeDef: {{{{node b}}}}; {NEG}",
        ),
        (
            'op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT_REF } }',
            "AttrValue must not have reference type value of float_ref\n\t for attr 'T'\n\t; "
            f"NodeDef: {{{{node b}}}}; {NEG}",
        ),
        (
            'op: "Neg" input: "x" attr { key: "T" value { type: 77 } }',
            f"AttrValue has invalid DataType enum: 77\n\t for attr 'T'\n\t; NodeDef: {{{{node b}}}}; {NEG}",
        ),
        (
            'op: "Neg" input: "x" attr { key: "T" value { type: DT_INVALID } }',
            f"AttrValue has invalid DataType\n\t for attr 'T'\n\t; NodeDef: {{{{node b}}}}; {NEG}",
        ),
        (
            'op: "Neg" input: "x" attr { key: "T" value { } }',
            f"AttrValue missing value with expected type 'type'\n\t for attr 'T'\n\t; NodeDef: {{{{node b}}}}; {NEG}",
        ),
        (
            'op: "Neg" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } }',
            f"NodeDef expected inputs 'float' do not match 2 inputs specified; {NEG}; NodeDef: {{{{node b}}}}",
        ),
        ('op: "Neg" input: "x"', f"NodeDef missing attr 'T' from {NEG}; NodeDef: {{{{node b}}}}"),
        (
            'op: "IdentityN" attr { key: "T" value { list { } } }',
            f"Length for attr 'T' of 0 must be at least minimum 1\n\t; NodeDef: {{{{node b}}}}; {IDENTITY_N}",
        ),
        (
            'op: "IdentityN" attr { key: "T" value { list { i: 3 } } }',
            "AttrValue had value with type 'list(int)' when 'list(type)' expected\n\t for attr 'T'\n\t; "
            f"NodeDef: {{{{node b}}}}; {IDENTITY_N}",
        ),
        (
            'op: "IdentityN" attr { key: "T" value { type: DT_FLOAT } }',
            "AttrValue had value with type 'type' when 'list(type)' expected\n\t for attr 'T'\n\t; "
            f"NodeDef: {{{{node b}}}}; {IDENTITY_N}",
        ),
        (
            'op: "Placeholder" attr { key: "shape" value { shape { unknown_rank: true } } }',
            "NodeDef missing attr 'dtype' from Op<name=Placeholder; signature= -> output:dtype; attr=dtype:type; "
            "attr=shape:shape,default=<unknown>>; NodeDef: {{node b}}",
        ),
        (
            'op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }',
            "NodeDef missing attr 'value' from Op<name=Const; signature= -> output:dtype; attr=value:tensor; "
            "attr=dtype:type>; NodeDef: {{node b}}",
        ),
        ('op: "NoOp" input: "^b:0"', "Control input '^b:0' must not have ':' in NodeDef: {{node b}}"),
        ('op: "NoOp" input: "^b" input: "a"', "Non-control input 'a' after control input in NodeDef: {{node b}}"),
    ],
)
def test_messages(text: str, message: str) -> None:
    """Every broken rule has TensorFlow's message, to the last character."""
    assert error_of(text) == message


@pytest.mark.parametrize(
    ("text", "first_line"),
    [
        (
            'op: "AddN" attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 0 } }',
            "Value for attr 'N' of 0 must be at least minimum 1",
        ),
        (
            'op: "Case" input: "x" attr { key: "branches" value { list { } } }',
            "Length for attr 'branches' of 0 must be at least minimum 1",
        ),
        (
            'op: "Conv2D" attr { key: "padding" value { s: "BAD" } }',
            'Value for attr \'padding\' of "BAD" is not in the list of allowed values: "SAME", "VALID", "EXPLICIT"',
        ),
        (
            'op: "ParseExample" input: "x"',
            "NodeDef missing attrs 'Nsparse', 'Ndense', 'sparse_types', 'Tdense', 'dense_shapes' from Op<name=Parse",
        ),
    ],
)
def test_first_lines(text: str, first_line: str) -> None:
    """Minimums, allowed values and several missing attrs at once."""
    assert error_of(text).startswith(first_line)


@pytest.mark.parametrize(
    "text",
    [
        'op: "NoOp" attr { key: "EXTRA" value { i: 3 } }',
        'op: "NoOp" attr { key: "_class" value { list { s: "loc:@a" } } }',
        'op: "NoOp" input: "^a" input: "^a"',
        'op: "StringFormat" attr { key: "T" value { list { } } } attr { key: "template" value { s: "" } }'
        ' attr { key: "placeholder" value { s: "" } } attr { key: "summarize" value { i: 3 } }',
        'op: "IdentityN" input: "a" attr { key: "T" value { list { type: DT_FLOAT } } }',
    ],
)
def test_accepted(text: str) -> None:
    """Undeclared attrs are ignored, repeated control inputs allowed, an empty list is a list of any type."""
    parsed, same = node(text), node(text)
    validate_node_def(parsed, lookup_op(parsed.op))
    assert parsed == same


def test_order_of_checks() -> None:
    """Input strings are checked before attrs, attrs before missing ones."""
    assert error_of('op: "Neg" input: "^a:0" attr { key: "T" value { i: 1 } }').startswith("Control input")
    assert error_of('op: "MatMul" attr { key: "transpose_a" value { i: 1 } }').startswith("AttrValue had value")


def test_op_must_match() -> None:
    """A node is checked against its own op only."""
    with pytest.raises(InvalidArgumentError, match="NodeDef op 'Wrong' does not match Op<name=NoOp"):
        validate_node_def(node('op: "Wrong"'), lookup_op("NoOp"))


def test_control_inputs_come_last() -> None:
    """Plain inputs first, then any number of control inputs."""
    inputs = ["a", "a:1", "^c", "^d"]
    check_inputs("b", inputs)
    for swapped in ([*inputs[:1], *inputs[2:], inputs[1]], ["^c", *inputs[:2]]):
        with pytest.raises(InvalidArgumentError, match=r"^Non-control input '.*' after control input"):
            check_inputs("b", swapped)


@pytest.mark.parametrize("expected", ["int", "list(int)"])
def test_no_number_is_converted(expected: str) -> None:
    """A bool or a float is no int."""
    for text in ("b: true", "f: 1.0", "list { f: 1.0 }", 'placeholder: "p"'):
        with pytest.raises(InvalidArgumentError):
            check_type(attr(text), expected)


def test_unset_value_is_an_empty_list_only() -> None:
    """A value without content passes for a list, for nothing else."""
    check_type(AttrValue(), "list(string)")
    with pytest.raises(InvalidArgumentError, match="AttrValue missing value with expected type 'string'"):
        check_type(AttrValue(), "string")


def test_deprecation() -> None:
    """An op is refused from the version on in which it was removed."""
    op = lookup_op("BatchNormWithGlobalNormalization")
    check_op_deprecation(op, 8)
    with pytest.raises(UnimplementedError) as caught:
        check_op_deprecation(op, 2474)
    assert caught.value.message == (
        "Op BatchNormWithGlobalNormalization is not available in GraphDef version 2474. It has been removed in version "
        "9. Use tf.nn.batch_normalization()."
    )


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("_n", [], "Illegal op name '_n'"),
        ("", [], "Illegal op name ''"),
        ("a>", [], "Illegal op name 'a>'"),
        ("n", ["a:00"], "Illegal op input name 'a:00'"),
        ("n", ["^b:0"], "Illegal op input name '^b:0'"),
        ("n", ["_a"], "Illegal op input name '_a'"),
        ("n", ["^a", "b"], "All control inputs must follow all data inputs"),
    ],
)
def test_external_syntax_refuses(name: str, inputs: list[str], message: str) -> None:
    """Names that begin with "_" and malformed inputs are reserved for runtimes."""
    with pytest.raises(InvalidArgumentError) as caught:
        validate_external_node_def_syntax(NodeDef(name=name, op="NoOp", input=inputs))
    assert caught.value.message.startswith(message)


def test_external_syntax_accepts() -> None:
    """Letters, digits and ._-/ after the first letter; ports without leading zeros."""
    legal = NodeDef(name="a.b/c-d_e", op="NoOp", input=["x", "x:0", "x:10", "x>y:1", "^y"])
    validate_external_node_def_syntax(legal)
    with pytest.raises(InvalidArgumentError):
        validate_external_node_def_syntax(NodeDef(name=f"{legal.name}!", op="NoOp"))


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("f: 1e-7", "1e-07"),
        ("f: 0.1", "0.1"),
        ("f: 123456789", "123456792"),
        ("f: inf", "inf"),
        ("b: true", "true"),
        ("s: 'a\"b\\n\\377'", '"a\\"b\\n\\377"'),
        (f"s: '{'a' * 79}'", f'"{"a" * 79}"'),
        (f"s: '{'a' * 80}'", '"aaaaaaaaaa...aaaaaaaaaa"'),
        ("type: DT_FLOAT_REF", "DT_FLOAT_REF"),
        ("type: 99", ""),
        ("shape { }", "[]"),
        ("shape { unknown_rank: true }", "<unknown>"),
        ("shape { dim { size: 2 } dim { size: -1 } }", "[2,?]"),
        ("list { b: true f: 1.5 }", "[1.5]"),
        ("list { }", "[]"),
        ("", "<Unknown AttrValue type>"),
        ('placeholder: "q"', "$q"),
        (
            'func { name: "F" attr { key: "a" value { i: 3 } } attr { key: "Z" value { type: DT_INT32 } } }',
            "F[Z=DT_INT32, a=3]",
        ),
        (
            "tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: [1, 2, 3] }",
            "Tensor<type: int32 shape: [3] values: 1 2 3>",
        ),
        (
            "tensor { dtype: DT_INT32 tensor_shape { dim { size: 20 } } int_val: 1 }",
            "Tensor<type: int32 shape: [20] values: 1 1 1...>",
        ),
        (
            "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { size: 3 } dim { size: 3 } } int_val: 1 }",
            "Tensor<type: int32 shape: [2,3,3] values: [[1 1 1]]...>",
        ),
        (
            "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { size: 2 } } int_val: [1, 2, 3, 4] }",
            "Tensor<type: int32 shape: [2,2] values: [1 2][3...]...>",
        ),
        (
            "tensor { dtype: DT_INT8 tensor_shape { dim { size: 2 } dim { size: 1 } dim { size: 2 } } int_val: 7 }",
            "Tensor<type: int8 shape: [2,1,2] values: [[7 7]][[7...]]...>",
        ),
        (
            "tensor { dtype: DT_INT8 tensor_shape { dim { size: -2 } } }",
            "<TensorProto: dtype: DT_INT8 tensor_shape { dim { size: -2 } }>",
        ),
        (
            'tensor { dtype: DT_INT32 tensor_content: "a" }',
            '<Invalid TensorProto: dtype: DT_INT32 tensor_content: "a">',
        ),
        ("tensor { dtype: DT_FLOAT float_val: 0.3333333 }", "Tensor<type: float shape: [] values: 0.333333313>"),
        ("tensor { dtype: DT_FLOAT float_val: 0.1 }", "Tensor<type: float shape: [] values: 0.1>"),
        ("tensor { dtype: DT_DOUBLE double_val: 0.1 }", "Tensor<type: double shape: [] values: 0.1>"),
        ("tensor { dtype: DT_DOUBLE double_val: 123456.7 }", "Tensor<type: double shape: [] values: 123456.7>"),
        ("tensor { dtype: DT_HALF half_val: 11878 }", "Tensor<type: half shape: [] values: 0.0999755859>"),
        ("tensor { dtype: DT_BOOL tensor_shape { } bool_val: true }", "Tensor<type: bool shape: [] values: 1>"),
        ("tensor { dtype: DT_FLOAT tensor_shape { dim { size: 0 } } }", "Tensor<type: float shape: [0] values: >"),
        (
            'tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: "a\\nb" }',
            "Tensor<type: string shape: [2] values: a\\nb a\\nb>",
        ),
    ],
)
def test_summaries_of_values(text: str, summary: str) -> None:
    """Values print as TensorFlow prints them."""
    assert summarize_attr(attr(text)) == summary


def test_long_lists_are_cut() -> None:
    """A list of 29 is printed in full, one of 30 loses its middle."""
    assert summarize_attr(AttrValue(list=AttrValue.ListValue(i=range(29)))) == str(list(range(29)))
    assert (
        summarize_attr(AttrValue(list=AttrValue.ListValue(i=range(30)))) == "[0, 1, 2, 3, 4, ..., 25, 26, 27, 28, 29]"
    )


def test_every_op_has_a_summary() -> None:
    """All signatures of the registry print, on one line."""
    assert all("\n" not in summarize_op(lookup_op(name)) for name in op_names())


@pytest.mark.parametrize(
    ("op", "summary"),
    [
        (
            "Assign",
            "Op<name=Assign; signature=ref:Ref(T), value:T -> output_ref:Ref(T); attr=T:type; "
            "attr=validate_shape:bool,default=true; attr=use_locking:bool,default=true; "
            "allows_uninitialized_input=true>",
        ),
        (
            "FIFOQueueV2",
            "Op<name=FIFOQueueV2; signature= -> handle:resource; attr=component_types:list(type),min=1; "
            'attr=shapes:list(shape),default=[],min=0; attr=capacity:int,default=-1; attr=container:string,default=""; '
            'attr=shared_name:string,default=""; is_stateful=true>',
        ),
    ],
)
def test_summaries_of_ops(op: str, summary: str) -> None:
    """Signatures print as TensorFlow prints them."""
    assert summarize_op(lookup_op(op)) == summary


def test_summary_of_a_node() -> None:
    """Attrs by name, the device last, inputs as written."""
    parsed = node('op: "Neg" device: "/cpu:0" input: "x:0" input: "^y" attr { key: "T" value { type: DT_FLOAT } }')
    assert summarize_node_def(parsed) == '{{node b}} = Neg[T=DT_FLOAT, _device="/cpu:0"](x:0, ^y)'
    assert summarize_node_def(node('op: "NoOp"')) == "{{node b}} = NoOp[]()"
