"""Ops that exist only in TensorFlow's tests: Error fails, InvalidRefType breaks its declaration, Delay takes time.

Names, arguments and attrs are those of TensorFlow's graph testing library.
"""

from __future__ import annotations

from ..protos import AttrValue, OpDef


def testing_ops() -> list[OpDef]:
    """The declarations, sorted by name."""
    return [
        _op("Delay", ["in"], ["out"], T="type", micros="int"),
        _op("Error", ["in"], ["out"], T="type", message="string", log_error="bool"),
        _invalid_ref_type(),
    ]


def _op(name: str, inputs: list[str], outputs: list[str], **attrs: str) -> OpDef:
    """An op whose arguments all have type T and whose bool attrs are False by default."""
    op = OpDef(name=name)
    op.input_arg.extend(OpDef.ArgDef(name=arg, type_attr="T") for arg in inputs)
    op.output_arg.extend(OpDef.ArgDef(name=arg, type_attr="T") for arg in outputs)
    for attr, kind in attrs.items():
        op.attr.add(name=attr, type=kind, default_value=AttrValue(b=False) if kind == "bool" else None)
    return op


def _invalid_ref_type() -> OpDef:
    """Declares an output that is a reference to TIn; its kernel outputs a reference to TOut."""
    op = _op("InvalidRefType", [], [], TIn="type", TOut="type")
    op.output_arg.add(name="out", type_attr="TIn", is_ref=True)
    return op
