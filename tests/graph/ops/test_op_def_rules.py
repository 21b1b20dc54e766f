"""Rules for declarations of ops: all public ops keep them, and each rule has an example that breaks it."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.ops.op_def_rules import validate_op_def
from partita.graph.ops.registry import lookup_op, op_names
from partita.graph.protos import OpDef


def test_the_registry_keeps_the_rules() -> None:
    """Every public op keeps the rules."""
    messages = []
    for name in op_names():
        try:
            validate_op_def(lookup_op(name).message)
        except InvalidArgumentError as error:
            messages.append(error.message)
    assert not messages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name: "lower"', "Invalid name: lower (Did you use CamelCase?)"),
        ('name: "X" attr { name: "a" type: "int" } input_arg { name: "a" type: DT_INT32 }', "Duplicate name: a"),
        ('name: "X" attr { name: "float32" type: "int" }', "Attr can't have name float32 that matches a data type"),
        ('name: "X" attr { name: "a" type: "bogus" }', "Unrecognized type 'bogus' in attr 'a'"),
        ('name: "X" attr { name: "a" type: "int extra" }', "Extra ' extra' at the end of attr a"),
        ('name: "X" attr { name: "a" type: "list(int) x" }', "Extra ' x' at the end of attr a"),
        ('name: "X" attr { name: "a" type: "list(int" }', "'list(' is missing ')' in attr a"),
        (
            'name: "X" attr { name: "a" type: "string" has_minimum: true minimum: 1 }',
            "Attr 'a' has minimum for unsupported type string",
        ),
        (
            'name: "X" attr { name: "a" type: "list(int)" has_minimum: true minimum: -1 }',
            "Attr 'a' with list type must have a non-negative minimum, not -1",
        ),
        ('name: "X" attr { name: "a" type: "int" minimum: 2 }', "Attr 'a' with has_minimum = false but minimum 2"),
        (
            'name: "X" attr { name: "a" type: "string" allowed_values { s: "x" } }',
            "AttrValue had value with type 'string' when 'list(string)' expected\n\t for attr 'a' in Op 'X'",
        ),
        (
            'name: "X" attr { name: "a" type: "int" default_value { b: true } }',
            "AttrValue had value with type 'bool' when 'int' expected",
        ),
        (
            'name: "X" attr { name: "a" type: "int" has_minimum: true minimum: 2 default_value { i: 1 } }',
            "Value for attr 'a' of 1 must be at least minimum 2",
        ),
        (
            'name: "X" attr { name: "a" type: "string" allowed_values { list { s: "x" } } default_value { s: "y" } }',
            'Value for attr \'a\' of "y" is not in the list of allowed values: "x"',
        ),
        ('name: "X" input_arg { name: "b" }', "Missing type for input 'b'"),
        ('name: "X" output_arg { name: "b" type_attr: "T" }', "No attr with name 'T' for output 'b'"),
        (
            'name: "X" attr { name: "T" type: "int" } input_arg { name: "b" type_attr: "T" }',
            "Attr 'T' used as type_attr for input 'b' has type int",
        ),
        (
            'name: "X" attr { name: "T" type: "type" } input_arg { name: "b" type_list_attr: "T" }',
            "Attr 'T' used as type_list_attr for input 'b' has type type",
        ),
        (
            'name: "X" attr { name: "N" type: "int" } input_arg { name: "b" type: DT_INT32 number_attr: "N" }',
            "Attr 'N' used as length for input 'b' must have minimum;",
        ),
        (
            'name: "X" attr { name: "N" type: "int" has_minimum: true minimum: -1 }'
            ' input_arg { name: "b" type: DT_INT32 number_attr: "N" }',
            "Attr 'N' used as length for input 'b' must have minimum >= 0;",
        ),
        (
            'name: "X" attr { name: "N" type: "float" } input_arg { name: "b" type: DT_INT32 number_attr: "N" }',
            "Attr 'N' used as length for input 'b' has type float",
        ),
        (
            'name: "X" attr { name: "N" type: "int" } input_arg { name: "b" type: DT_INT32 number_attr: "N" }',
            "Attr 'N' used as length for input 'b' must have minimum; in OpDef",
        ),
        (
            'name: "X" attr { name: "N" type: "int" has_minimum: true } input_arg { name: "b" number_attr: "N" }',
            "Missing type for input 'b'",
        ),
        (
            'name: "X" attr { name: "T" type: "int" } input_arg { name: "b" type_attr: "T" }',
            "Attr 'T' used as type_attr for input 'b' has type int != type",
        ),
        ('name: "X" attr { name: "a" type: "list(foo)" }', "Unrecognized type 'foo)' in attr 'a'"),
        ('name: "X" attr { name: "half_ref" type: "int" }', "Attr can't have name half_ref that matches a data type"),
        (
            'name: "X" attr { name: "a" type: "int" has_minimum: true minimum: 3 default_value { i: 2 } }',
            "Value for attr 'a' of 2 must be at least minimum 3\n\t in Op 'X'",
        ),
        (
            'name: "X" attr { name: "a" type: "list(type)" default_value { list { type: DT_INVALID } } }',
            "AttrValue contains invalid DataType\n\t for attr 'a'\n\t in Op 'X'",
        ),
        (
            'name: "X" attr { name: "T" type: "type" } input_arg { name: "b" type: DT_INT32 type_attr: "T" }',
            "Exactly one of type, type_attr, type_list_attr must be set for input 'b'",
        ),
        (
            'name: "X" input_arg { name: "b" type: DT_FLOAT_REF }',
            "Illegal use of ref type 'float_ref'. Use 'Ref(type)' instead for input 'b'",
        ),
    ],
)
def test_broken_rules(text: str, message: str) -> None:
    """The message begins with TensorFlow's and ends with the OpDef."""
    op = text_format.Parse(text, OpDef())
    with pytest.raises(InvalidArgumentError) as caught:
        validate_op_def(op)
    assert caught.value.message.startswith(message)
    assert f'; in OpDef: name: "{op.name}"' in caught.value.message


def test_internal_names_are_free() -> None:
    """A name may begin with "_", for ops of a runtime, or with a namespace, and has letters, digits and "_"."""
    for name in ("_lower", "Addons>Thing", "Some_Thing_"):
        declared = OpDef(name=name)
        validate_op_def(declared)
        assert declared == OpDef(name=name)


def test_only_texts_and_types_can_be_restricted() -> None:
    """A default value of another type with a list of allowed values is UNIMPLEMENTED, as in TensorFlow."""
    allowed = 'attr { name: "a" type: "int" allowed_values { list { i: 1 } } default_value { i: 1 } }'
    with pytest.raises(UnimplementedError, match="Support for allowed_values not implemented for type int"):
        validate_op_def(text_format.Parse(f'name: "X" {allowed}', OpDef()))
