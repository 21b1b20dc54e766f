"""Validates single nodes against the signatures of their ops, with the errors of TensorFlow 2.21.

Checks that depend on op and attrs alone (`check_attrs`, `check_op_deprecation`) are separate from those of input
strings (`check_inputs`, `check_arity`), so that they run only once for all nodes that share their `NodeProperties`. The
importer checks whether inputs exist and have the right types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..errors import InvalidArgumentError, UnimplementedError
from .attrs import attr_value, decode
from .columns import Columns
from .dtypes import DataType, dtype_name, is_ref
from .ops.attr_checks import check_value
from .ops.properties import Attrs
from .ops.registry import AttrDef, OpSignature
from .ops.summaries import node_for_error, summarize_node, summarize_op
from .ops.type_inference import input_output_types
from .protos import AttrValue, NodeDef

AttrMessages = Mapping[str, AttrValue] | Mapping[str, bytes]

NODE_NAME = r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*+(?:>[A-Za-z0-9.][A-Za-z0-9_.\-/]*+)*+"
"""a name that a node outside of the runtime may have, as a regular expression"""
_EXTERNAL_NAME = re.compile(NODE_NAME)
_EXTERNAL_DATA_INPUT = re.compile(rf"{NODE_NAME}(:(0|[1-9][0-9]*))?")
_EXTERNAL_CONTROL_INPUT = re.compile(rf"\^{NODE_NAME}")
_TENSOR_TAG = 8 << 3 | 2  # first byte of a serialised AttrValue that holds a tensor


def validate_node_def(node: NodeDef, signature: OpSignature) -> None:
    """Raises InvalidArgumentError for the first rule that a node breaks; its default attrs must be filled in.

    The order of the checks is TensorFlow's: op, input strings, attrs, missing attrs, number of inputs.
    """
    if node.op != signature.name:
        raise InvalidArgumentError(
            f"NodeDef op '{node.op}' does not match {summarize_op(signature)}; NodeDef: {node_for_error(node.name)}"
        )
    check_inputs(node.name, node.input)
    check_attrs(node.name, signature, dict(node.attr))
    attrs = {name: decode(value) for name, value in node.attr.items() if not value.HasField("tensor")}
    check_arity(node.name, signature, input_output_types(signature, attrs)[0], _num_data(node.input))


def check_inputs(name: str, inputs: Iterable[str]) -> None:
    """Raises InvalidArgumentError for a control input with an output number, or a data input after a control input."""
    control = False
    for text in inputs:
        if text.startswith("^"):
            control = True
            if ":" in text:
                raise InvalidArgumentError(
                    f"Control input '{text}' must not have ':' in NodeDef: {node_for_error(name)}", node=name
                )
        elif control:
            raise InvalidArgumentError(
                f"Non-control input '{text}' after control input in NodeDef: {node_for_error(name)}", node=name
            )


def check_attrs(name: str, signature: OpSignature, attrs: Attrs | AttrMessages, *, may_be_open: bool = True) -> None:
    """Raises InvalidArgumentError for an attr whose value does not fit its declaration, or a missing attr.

    As in TensorFlow, attrs that the op does not declare are ignored (a newer producer may know more). `may_be_open`
    allows placeholders, which the body of a function leaves to its caller.
    """
    check_given_attrs(name, signature, attrs, may_be_open=may_be_open)
    missing = [key for key in signature.attrs if key not in attrs]
    if missing:
        raise InvalidArgumentError(
            f"NodeDef missing attr{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))} from "
            f"{summarize_op(signature)}; NodeDef: {node_for_error(name)}",
            node=name,
            op=signature.name,
        )


def check_kinds(graph: Columns) -> None:
    """`check_attrs` for every kind of node of a graph that is to run; the error names the first node of the kind."""
    for kind in graph.distinct_properties()[0]:
        try:
            check_attrs("", kind.op_def, kind.attrs, may_be_open=False)
        except InvalidArgumentError:
            first = next(i for i, shared in enumerate(graph.shared_properties()) if shared is kind)
            check_attrs(graph.node_name(first), kind.op_def, kind.attrs, may_be_open=False)


def check_given_attrs(
    name: str, signature: OpSignature, attrs: Attrs | AttrMessages, *, may_be_open: bool = False
) -> None:
    """`check_attrs` for nodes that may lack attrs; placeholders are refused unless `may_be_open`.

    Attrs that many nodes share are asked for at every stage, and looked at once.
    """
    if isinstance(attrs, Attrs) and attrs.fitting is signature:
        return
    declared, is_open = signature.attrs, False
    for key in sorted(attrs):
        definition = declared.get(key)
        if definition is None or key.startswith("_") or _fits(attrs, definition):
            continue
        value = _message(attrs, key)
        if value.placeholder and may_be_open:
            is_open = True
            continue
        try:
            check_value(value, definition)
        except InvalidArgumentError as error:
            place = f"; NodeDef: {node_for_error(name)}; {summarize_op(signature)}"
            raise InvalidArgumentError(f"{error.message}\n\t{place}", node=name, op=signature.name) from None
    if isinstance(attrs, Attrs) and not is_open:
        attrs.fitting = signature


def _fits(attrs: Attrs | AttrMessages, definition: AttrDef) -> bool:
    """A quick yes for the most frequent cases of large graphs: constants, and types that are not restricted."""
    if not isinstance(attrs, Attrs):
        return False
    if definition.type == "tensor":
        return attrs.serialised(definition.name)[:1] == bytes((_TENSOR_TAG,))
    if definition.type != "type" or definition.allowed is not None:
        return False
    try:
        value = attrs[definition.name]
    except InvalidArgumentError:  # an unknown DataType number: the full check reports it
        return False
    return isinstance(value, DataType) and value != DataType.INVALID and not is_ref(value)


def _message(attrs: Attrs | AttrMessages, key: str) -> AttrValue:
    if isinstance(attrs, Attrs):
        return attrs.message(key)
    value = attrs[key]
    return attr_value(value) if isinstance(value, bytes) else value


def _num_data(inputs: Iterable[str]) -> int:
    return sum(not text.startswith("^") for text in inputs)


def check_arity(name: str, signature: OpSignature, input_types: Sequence[DataType], count: int) -> None:
    """Raises InvalidArgumentError unless `count` data inputs are as many as the op takes with these attrs."""
    if count != len(input_types):
        types = ", ".join(map(dtype_name, input_types))
        raise InvalidArgumentError(
            f"NodeDef expected inputs '{types}' do not match {count} inputs specified; {summarize_op(signature)}; "
            f"NodeDef: {node_for_error(name)}",
            node=name,
            op=signature.name,
        )


def check_op_deprecation(signature: OpSignature, producer: int) -> None:
    """Raises UnimplementedError for an op that was removed before the graph's producer version."""
    if signature.deprecation is not None and producer >= signature.deprecation[0]:
        version, explanation = signature.deprecation
        raise UnimplementedError(
            f"Op {signature.name} is not available in GraphDef version {producer}. "
            f"It has been removed in version {version}. {explanation}.",
            op=signature.name,
        )


def validate_external_node_def_syntax(node: NodeDef) -> None:
    """Raises InvalidArgumentError for names and inputs that are reserved for the runtime.

    As in TensorFlow, a data input is refused only right after a control input.
    """
    if not _EXTERNAL_NAME.fullmatch(node.name):
        raise InvalidArgumentError(
            f"Illegal op name '{node.name}'; use letters, digits and ._-/ after the first letter"
        )
    after_control = False
    for text in node.input:
        is_control = bool(_EXTERNAL_CONTROL_INPUT.fullmatch(text))
        if not is_control and not _EXTERNAL_DATA_INPUT.fullmatch(text):
            raise InvalidArgumentError(f"Illegal op input name '{text}'; write name, name:1 or ^name", node=node.name)
        if after_control and not is_control:
            raise InvalidArgumentError(
                f"All control inputs must follow all data inputs: '{text}' of '{node.name}' does not", node=node.name
            )
        after_control = is_control


def summarize_node_def(node: NodeDef) -> str:
    """One line of text for a node: name, op, attrs by name, device, inputs as written."""
    return summarize_node(node.name, node.op, node.input, dict(node.attr), node.device)
