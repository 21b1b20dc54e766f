"""Builds one node with chained calls, checking inputs against the signature of its op.

`NodeDefBuilder` gives a NodeDef, `NodeBuilder` adds a node and its edges to a graph. Attrs for types and counts follow
from the inputs. Errors are collected, and `finalize` reports all of them together, so calls can be chained without
checks; `finalize` may be called again after more inputs.

`front_end.py` checks its nodes with `NodeDefBuilder` too. `NodeBuilder` is separate from it because passes port
TensorFlow's order of changes: names are used as given, and each node gets its edges, and so their ids, at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from ...errors import InvalidArgumentError, NotFoundError
from ..attrs import attr_values_equal, encode, guessed_type
from ..dtypes import DataType, base_type, dtype_name, is_ref, make_ref, types_compatible
from ..graph import Graph
from ..graphdef.default_attrs import add_defaults
from ..node import Node
from ..ops.properties import NodeProperties, join_entry, make_properties
from ..ops.registry import ArgDef, OpSignature, lookup_op
from ..ops.summaries import summarize_attr, summarize_op
from ..protos import AttrValue, NodeDef
from ..validate import check_op_deprecation, validate_node_def


class InputRef(NamedTuple):
    """One tensor as a node's input: output `port` of the node called `node`, of type `dtype`."""

    node: str
    port: int
    dtype: DataType


class NodeDefBuilder:
    """Collects the parts of a NodeDef."""

    def __init__(self, name: str, op: str | OpSignature) -> None:
        """A node called `name`; `op` is the name of a registered op or a signature (a function's, say)."""
        self.name = name
        self._errors: list[str] = []
        self._inputs: list[str] = []
        self._controls: list[str] = []
        self._attrs: dict[str, AttrValue] = {}
        self._device = ""
        self._num_args = 0
        self.op_def: OpSignature | None = None
        try:
            self.op_def = lookup_op(op) if isinstance(op, str) else op
        except NotFoundError as error:
            self._errors.append(error.message)

    def input(self, node: str, index: int = 0, dtype: DataType = DataType.INVALID) -> Self:
        """The next argument: output `index` of `node`, a tensor of type `dtype`."""
        arg = self._next_arg()
        if arg is not None:
            self._single(arg, InputRef(node, index, dtype))
        return self

    def input_list(self, refs: Sequence[InputRef]) -> Self:
        """The next argument, one that takes several tensors."""
        arg = self._next_arg()
        if arg is not None:
            for ref in refs:
                self._add_text(ref)
            self._list(arg, refs)
        return self

    def control_input(self, node: str) -> Self:
        """Adds a node that must run before this one."""
        self._controls.append(f"^{node}")
        return self

    def device(self, name: str) -> Self:
        self._device = name
        return self

    def attr(self, name: str, value: Any) -> Self:
        """Sets an attr to a Python value or AttrValue; setting it again to another value is an error."""
        declared = self.op_def.attrs.get(name) if self.op_def is not None else None
        try:
            message = encode(value, declared.type if declared is not None else guessed_type(value))
        except InvalidArgumentError as error:
            return self.fail(f"Attr '{name}': {error.message}")
        known = self._attrs.setdefault(name, message)
        if not attr_values_equal(known, message):
            self.fail(f"Inconsistent values for attr '{name}' {summarize_attr(known)} vs. {summarize_attr(message)}")
        return self

    def fail(self, message: str) -> Self:
        """Adds an error for `finalize` to report."""
        self._errors.append(message)
        return self

    def finalize(self) -> NodeDef:
        """The node, default attrs filled in.

        Raises InvalidArgumentError with all collected errors.
        """
        errors = list(self._errors)
        if self.op_def is not None and self._num_args < len(self.op_def.input_args):
            errors.append(f"{self._num_args} inputs specified of {len(self.op_def.input_args)} inputs in Op")
        if errors or self.op_def is None:
            raise self._error(errors)
        node = NodeDef(name=self.name, op=self.op_def.name, device=self._device, input=self._inputs + self._controls)
        for name, value in self._attrs.items():
            node.attr[name].CopyFrom(value)
        add_defaults(node, self.op_def)
        return node

    def _error(self, errors: list[str]) -> InvalidArgumentError:
        using = f" using {summarize_op(self.op_def)}" if self.op_def is not None else ""
        place = f"while building NodeDef '{self.name}'{using}"
        if len(errors) == 1:
            return InvalidArgumentError(f"{errors[0]} {place}", node=self.name)
        return InvalidArgumentError(f"{len(errors)} errors {place}:\n" + "\n".join(errors), node=self.name)

    def _next_arg(self) -> ArgDef | None:
        if self.op_def is None:
            return None
        if self._num_args >= len(self.op_def.input_args):
            self.fail(f"More Input() calls than the {len(self.op_def.input_args)} input_args")
            return None
        self._num_args += 1
        return self.op_def.input_args[self._num_args - 1]

    def _add_text(self, ref: InputRef) -> None:
        if not ref.node:
            self.fail("Empty input node name")
        elif ref.node.startswith("^"):
            self.fail(f"Non-control input starting with ^: {ref.node}")
        else:
            self._inputs.append(f"{ref.node}:{ref.port}" if ref.port > 0 else ref.node)

    def _single(self, arg: ArgDef, ref: InputRef) -> None:
        self._add_text(ref)
        if arg.number_attr or arg.type_list_attr:
            self.fail(f"Single tensor passed to '{arg.name}', expected list")
        elif arg.type:
            self._check_type(arg, arg.type, ref.dtype)
        else:
            self._check_ref(arg, ref.dtype)
            self.attr(arg.type_attr, base_type(ref.dtype))

    def _list(self, arg: ArgDef, refs: Sequence[InputRef]) -> None:
        if arg.number_attr:
            self.attr(arg.number_attr, len(refs))
            expected = arg.type
            if not expected and refs:
                expected = base_type(refs[0].dtype)
                self.attr(arg.type_attr, expected)
            for ref in refs:
                self._check_type(arg, expected, ref.dtype)
        elif arg.type_list_attr:
            for ref in refs:
                self._check_ref(arg, ref.dtype)
            self.attr(arg.type_list_attr, [base_type(ref.dtype) for ref in refs])
        else:
            self.fail(f"List provided to input '{arg.name}' when single Tensor expected")

    def _check_type(self, arg: ArgDef, expected: DataType, actual: DataType) -> None:
        wanted = make_ref(expected) if arg.is_ref else expected
        if not types_compatible(wanted, actual):
            self.fail(f"Input '{arg.name}' passed {dtype_name(actual)} expected {dtype_name(wanted)}")

    def _check_ref(self, arg: ArgDef, actual: DataType) -> None:
        if arg.is_ref and not is_ref(actual):
            self.fail(f"Input '{arg.name}' passed {dtype_name(actual)} expected ref type")


def properties_of_node_def(node: NodeDef, signature: OpSignature) -> NodeProperties:
    """The properties of a node that has all its attrs; raises as `make_properties`."""
    entries = {name: value.SerializeToString(deterministic=True) for name, value in node.attr.items()}
    return make_properties(signature, [join_entry(name, entries[name]) for name in sorted(entries)])


class NodeBuilder:
    """Collects the parts of a node and adds it, with its edges, to a graph."""

    def __init__(self, name: str, op: str | OpSignature) -> None:
        """A node called `name`; `op` is the name of a registered op or a signature."""
        self._builder = NodeDefBuilder(name, op)
        self._op = op if isinstance(op, str) else op.name
        self._sources: list[tuple[Node, int] | None] = []
        self._control_nodes: list[Node] = []

    def input(self, node: Node | None, index: int = 0) -> Self:
        """The next argument: output `index` of a node of the graph."""
        ref = self._ref(node, index)
        if ref is not None:
            self._builder.input(*ref)
        return self

    def back_edge(self, node: str, index: int, dtype: DataType) -> Self:
        """The next argument: a node that does not exist yet. Only its name is stored; the caller adds the edge."""
        self._sources.append(None)
        self._builder.input(node, index, dtype)
        return self

    def input_list(self, outputs: Sequence[tuple[Node | None, int]]) -> Self:
        """The next argument, one that takes several tensors."""
        refs = [self._ref(node, index) for node, index in outputs]
        if None not in refs:
            self._builder.input_list([ref for ref in refs if ref is not None])
        return self

    def control_input(self, node: Node) -> Self:
        """Adds a node that must run before this one."""
        self._control_nodes.append(node)
        self._builder.control_input(node.name)
        return self

    def device(self, name: str) -> Self:
        self._builder.device(name)
        return self

    def attr(self, name: str, value: Any) -> Self:
        self._builder.attr(name, value)
        return self

    def finalize(self, graph: Graph) -> Node:
        """Validates the node, adds it and its edges to `graph`, and returns it.

        Raises InvalidArgumentError with all collected errors, UnimplementedError for an op that was removed in the
        graph's version. The graph is unchanged then.
        """
        node_def = self._builder.finalize()
        signature = self._builder.op_def or lookup_op(self._op)
        validate_node_def(node_def, signature)
        check_op_deprecation(signature, graph.versions.producer)
        node = graph.add_node_with(
            node_def.name, properties_of_node_def(node_def, signature), device=node_def.device, inputs=node_def.input
        )
        for port, source in enumerate(self._sources):
            if source is not None:
                graph.add_edge(source[0], source[1], node, port)
        for control in self._control_nodes:
            graph.add_control_edge(control, node)
        return node

    def _ref(self, node: Node | None, index: int) -> InputRef | None:
        if node is None:
            self._builder.fail(f"Attempt to add nullptr Node to node with type {self._op}")
        elif not 0 <= index < node.num_outputs:
            self._builder.fail(
                f"Attempt to add output {index} of {node.name} not in range [0, {node.num_outputs}) to node with type "
                f"{self._op}"
            )
        else:
            self._sources.append((node, index))
            return InputRef(node.name, index, node.output_types[index])
        return None
