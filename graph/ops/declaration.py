"""The declaration of an op in words, as an OpDef: what `register_op` takes beside an OpDef.

The first line is the op's name; every other line declares one argument, attr or flag. `#` begins a comment.

    Smooth                              # the name, in CamelCase
    input values: T                     # a type, or the attr that gives it
    input windows: N * int32            # N tensors of one type
    input state: Ref(float)             # a reference to a variable's tensor
    input others: Tothers               # a list of tensors, whose types are the attr list(type)
    output smoothed: T
    attr T: {float, double} = float     # allowed values in braces, the default behind "="
    attr N: int >= 1
    attr Tothers: list(type) >= 0
    attr passes: int = 3
    attr mode: {"mean", "median"} = "mean"
    attr size: shape = [2, ?]
    stateful                            # or: commutative, aggregate, allows_uninitialized_input

Types of attrs are those of an OpDef: string, int, float, bool, type, shape, tensor, func, and list(...) of them; also
`numbertype`, `realnumbertype` and `quantizedtype`, groups of element types that TensorFlow's declarations name so. A
count of tensors, and the length of a list of types that an argument has, is at least 1 unless ">=" says otherwise. An
op with a resource among its arguments is stateful. A tensor or function has no default in words: give an OpDef instead.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator
from typing import Any

from ...errors import InvalidArgumentError
from ..attrs import encode
from ..dtypes import DataType, parse_dtype
from ..protos import OpDef

_ARGUMENT = re.compile(r"(input|output)\s+(\w+)\s*:\s*(?:(\w+)\s*\*\s*)?(?:(Ref)\(\s*(\w+)\s*\)|(\w+))")
_ATTR = re.compile(
    r"""attr \s+ (?P<name>\w+) \s*:\s* (?P<type>list\(.*?\)|\{.*?\}|\w+)
        (?:\s* >= \s* (?P<minimum>-?\d+))? (?:\s* = \s* (?P<default>.+))?""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"""("[^"]*"|'[^']*')|\s*\#.*""")
_FLAGS = {
    "stateful": "is_stateful",
    "commutative": "is_commutative",
    "aggregate": "is_aggregate",
    "allows_uninitialized_input": "allows_uninitialized_input",
}
_REAL = "float double int32 uint8 int16 int8 int64 bfloat16 uint16 half uint32 uint64"
_NUMBERS = """float double int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16
              complex128 half uint32 uint64"""
_QUANTIZED = "qint8 quint8 qint32 qint16 quint16"
_GROUPS = {
    group: names.split()
    for group, names in (("numbertype", _NUMBERS), ("realnumbertype", _REAL), ("quantizedtype", _QUANTIZED))
}


def op_def_from_words(words: str) -> OpDef:
    """The OpDef that `words` declare; its rules are checked elsewhere (`validate_op_def`).

    Raises InvalidArgumentError, naming the line, for one that is no statement and for a value that does not fit its
    type.
    """
    lines = [line for line in (_COMMENT.sub(r"\1", line).strip() for line in words.splitlines()) if line]
    if not lines:
        raise InvalidArgumentError("the declaration of an op is empty; its first line must be the op's name")
    op = OpDef(name=lines[0])
    attrs = [line for line in lines[1:] if line.startswith("attr ")]
    for line in attrs:
        op.attr.append(_attr(op.name, line))
    for line in lines[1:]:
        if line in _FLAGS:
            setattr(op, _FLAGS[line], True)
        elif line not in attrs:
            _add_argument(op, line)
    _imply_minimums(op)
    op.is_stateful |= any(int(arg.type) == DataType.RESOURCE for arg in (*op.input_arg, *op.output_arg))
    return op


def _refused(op: str, line: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"op {op!r}, line {line!r}: {why}", op=op)


def _add_argument(op: OpDef, line: str) -> None:
    match = _ARGUMENT.fullmatch(line)
    if match is None:
        flags = ", ".join(_FLAGS)
        raise _refused(
            op.name, line, f'write "input NAME: TYPE", "output NAME: TYPE", "attr NAME: TYPE" or one of {flags}'
        )
    direction, name, number, is_ref, referred, plain = match.groups()
    argument = (op.input_arg if direction == "input" else op.output_arg).add(name=name, is_ref=bool(is_ref))
    if number:
        argument.number_attr = number
    source = referred or plain
    declared = {attr.name: attr.type for attr in op.attr}.get(source)
    if declared == "list(type)":
        argument.type_list_attr = source
    elif declared is not None:
        argument.type_attr = source
    else:
        argument.MergeFrom(OpDef.ArgDef(type=f"DT_{_element_type(op.name, line, source).name}"))


def _element_type(op: str, line: str, name: str) -> DataType:
    try:
        return parse_dtype(name)
    except InvalidArgumentError:
        raise _refused(op, line, f"{name!r} is neither an element type nor an attr of the op") from None


def _attr(op: str, line: str) -> OpDef.AttrDef:
    match = _ATTR.fullmatch(line)
    if match is None:
        raise _refused(op, line, 'write "attr NAME: TYPE", then ">= MINIMUM" and "= DEFAULT" where it has them')
    is_list = match["type"].startswith("list(")
    base = match["type"].removeprefix("list(").removesuffix(")") if is_list else match["type"]
    allowed = _allowed(op, line, base)
    if allowed:
        base = "string" if isinstance(allowed[0], str) and allowed[0][:1] in "\"'" else "type"
    attr = OpDef.AttrDef(name=match["name"], type=f"list({base})" if is_list else base)
    if match["minimum"] is not None:
        attr.has_minimum, attr.minimum = True, int(match["minimum"])
    if allowed:
        values = [_value(op, line, text, base) for text in allowed]
        attr.allowed_values.CopyFrom(_encoded(op, line, values, f"list({base})"))
    if match["default"] is not None:
        attr.default_value.CopyFrom(_encoded(op, line, _default(op, line, match["default"], base, is_list), attr.type))
    return attr


def _allowed(op: str, line: str, base: str) -> list[str]:
    """The texts of the allowed values; none where the attr allows every value of its type."""
    if base in _GROUPS:
        return _GROUPS[base]
    if not base.startswith("{"):
        return []
    values = list(_items(base[1:-1]))
    if not values:
        raise _refused(op, line, "braces hold the allowed values, at least one")
    return values


def _items(text: str) -> Iterator[str]:
    """The parts of a text between commas that are in no quotes and no brackets."""
    depth, quote, start = 0, "", 0
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
        elif char == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if text[start:].strip():
        yield text[start:].strip()


def _default(op: str, line: str, text: str, base: str, is_list: bool) -> Any:  # Any: a value of the attr's type
    if not is_list:
        return _value(op, line, text, base)
    if not (text.startswith("[") and text.endswith("]")):
        raise _refused(op, line, "the default of a list stands in brackets: [1, 2]")
    return [_value(op, line, item, base) for item in _items(text[1:-1])]


def _value(op: str, line: str, text: str, base: str) -> Any:  # Any: a value of the attr's type
    """The Python value that a text stands for."""
    if base == "type":
        return _element_type(op, line, text)
    if base == "shape":
        return _shape(op, line, text)
    if base == "bool" and text in ("true", "false"):
        return text == "true"
    if base in ("int", "float", "string"):
        try:
            return literal_eval(text)
        except (ValueError, SyntaxError):
            pass
    raise _refused(op, line, f"{text!r} is no value of type {base!r} in words")


def _shape(op: str, line: str, text: str) -> tuple[int | None, ...] | None:
    """The sizes in brackets, "?" for unknown ones; "?" alone is an unknown rank."""
    if text == "?":
        return None
    sizes = [part.strip() for part in text.removeprefix("[").removesuffix("]").split(",") if part.strip()]
    if not (text.startswith("[") and text.endswith("]") and all(size == "?" or size.isdecimal() for size in sizes)):
        raise _refused(op, line, f"{text!r} is no shape; write [2, ?], or ? for an unknown rank")
    return tuple(None if size == "?" else int(size) for size in sizes)


def _encoded(op: str, line: str, value: Any, type_string: str) -> Any:  # Any: a value of the attr's type, an AttrValue
    try:
        return encode(value, type_string)
    except InvalidArgumentError as error:
        raise _refused(op, line, error.message) from None


def _imply_minimums(op: OpDef) -> None:
    """Counts of tensors and lists of their types are at least 1 where no minimum is given."""
    used = {name for arg in (*op.input_arg, *op.output_arg) for name in (arg.number_attr, arg.type_list_attr) if name}
    for attr in op.attr:
        if attr.name in used and not attr.has_minimum and attr.type in ("int", "list(type)"):
            attr.has_minimum, attr.minimum = True, 1
