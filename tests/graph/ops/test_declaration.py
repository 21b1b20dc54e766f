"""Declarations of ops in words."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from partita.graph.attrs import decode
from partita.graph.dtypes import DataType, dtype_name
from partita.graph.ops.declaration import op_def_from_words
from partita.graph.ops.op_def_rules import validate_op_def
from partita.graph.ops.registry import lookup_op

WORDS_OF_BUILT_IN = {
    "MatMul": """
        MatMul
        input a: T
        input b: T
        output product: T
        attr transpose_a: bool = false
        attr transpose_b: bool = false
        attr T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}
        attr grad_a: bool = false
        attr grad_b: bool = false
    """,
    "Placeholder": """
        Placeholder
        output output: dtype
        attr dtype: type
        attr shape: shape = ?
    """,
    "IdentityN": """
        IdentityN
        input input: T      # the same list
        output output: T
        attr T: list(type)
    """,
    "Pack": """
        Pack
        input values: N * T
        output output: T
        attr N: int >= 1
        attr T: type
        attr axis: int = 0
    """,
    "AssignSub": """
        AssignSub
        input ref: Ref(T)
        input value: T
        output output_ref: Ref(T)
        attr T: numbertype
        attr use_locking: bool = false
    """,
    "MaxPoolGradGrad": """
        MaxPoolGradGrad
        input orig_input: T
        input orig_output: T
        input grad: T
        output output: T
        attr ksize: list(int) >= 4
        attr strides: list(int) >= 4
        attr padding: {"SAME", "VALID"}
        attr data_format: {"NHWC", "NCHW"} = "NHWC"
        attr T: realnumbertype
    """,
    "QueueEnqueueV2": """
        QueueEnqueueV2
        input handle: resource
        input components: Tcomponents
        attr Tcomponents: list(type)
        attr timeout_ms: int = -1
        stateful
    """,
}


@pytest.mark.parametrize("op", WORDS_OF_BUILT_IN)
def test_words_say_what_the_registry_of_tensorflow_says(op: str) -> None:
    """Arguments, attrs, allowed values, minimums, defaults and flags; the order of allowed types does not count."""
    declared, known = op_def_from_words(WORDS_OF_BUILT_IN[op]), lookup_op(op).message
    validate_op_def(declared)
    assert list(declared.input_arg) == list(known.input_arg)
    assert list(declared.output_arg) == list(known.output_arg)
    assert declared.is_stateful == known.is_stateful
    ours = {attr.name: attr for attr in declared.attr}
    assert list(ours) == [attr.name for attr in known.attr]
    for attr in known.attr:
        mine = ours[attr.name]
        assert (mine.type, mine.has_minimum, mine.minimum) == (attr.type, attr.has_minimum, attr.minimum)
        assert mine.default_value == attr.default_value
        assert set(decode(mine.allowed_values) or ()) == set(decode(attr.allowed_values) or ())


def test_counts_and_lists_of_inputs_are_at_least_one() -> None:
    """Where no minimum is given, as in TensorFlow; other ints and lists have none."""
    op = op_def_from_words("Some\ninput x: N * float\ninput y: Ts\nattr N: int\nattr Ts: list(type)\nattr k: int")
    assert [(attr.name, attr.has_minimum, attr.minimum) for attr in op.attr] == [
        ("N", True, 1),
        ("Ts", True, 1),
        ("k", False, 0),
    ]


def test_values_of_every_type() -> None:
    """Defaults of all types that words can say, and of lists of them."""
    op = op_def_from_words("""
        Values
        attr a: int = -3
        attr b: float = 2.5e-3
        attr c: bool = true
        attr d: string = "a # b"
        attr e: type = bfloat16
        attr f: shape = [2, ?]
        attr g: list(int) = [1, 2]
        attr h: list(string) = ["x", 'y,z']
        attr i: list(shape) = [[1], ?]
        attr j: list({float, half}) = [half]
    """)
    values = {attr.name: decode(attr.default_value) for attr in op.attr}
    assert (values["a"], values["b"], values["c"], values["d"]) == (-3, pytest.approx(2.5e-3), True, b"a # b")
    assert dtype_name(values["e"]) == "bfloat16"
    assert (values["f"], values["g"], values["h"]) == ((2, None), (1, 2), (b"x", b"y,z"))
    assert values["i"] == ((1,), None)
    assert values["j"] == (DataType.HALF,)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "is empty; its first line must be the op's name"),
        ("Op\nin x: float", 'write "input NAME: TYPE"'),
        ("Op\ninput x: flot", "'flot' is neither an element type nor an attr of the op"),
        ("Op\nattr a", 'write "attr NAME: TYPE"'),
        ("Op\nattr a: int = many", "'many' is no value of type 'int' in words"),
        ("Op\nattr a: int = 2.5", "no value for an attr of type int"),
        ("Op\nattr a: {}", "braces hold the allowed values"),
        ("Op\nattr a: list(int) = 3", "the default of a list stands in brackets"),
        ("Op\nattr a: shape = (2,)", "is no shape; write"),
        ("Op\nattr a: tensor = 3", "'3' is no value of type 'tensor' in words"),
    ],
)
def test_wrong_words(words: str, message: str) -> None:
    """The error names the op, the line and what to write."""
    with pytest.raises(InvalidArgumentError, match=message):
        op_def_from_words(words)


def test_an_op_with_a_resource_is_stateful() -> None:
    """Whether the resource is an input or an output, one or many."""
    for line in ("input r: resource", "output r: resource", "input r: N * resource\nattr N: int"):
        assert op_def_from_words(f"Some\n{line}").is_stateful
    assert not op_def_from_words("Some\ninput r: variant").is_stateful


def test_groups_of_types_are_listed_as_in_tensorflow() -> None:
    """The order shows in messages about a type that is not allowed."""
    op = op_def_from_words("Some\nattr T: numbertype")
    assert list(decode(op.attr[0].allowed_values))[5:9] == [
        DataType.INT8,
        DataType.COMPLEX64,
        DataType.INT64,
        DataType.QINT8,
    ]
