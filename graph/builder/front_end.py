"""The front end of all builders: checks a node, makes it, and passes it to a sink, which stores it.

    op name, inputs, attrs, scope, device  --NodeMaker.op-->  a checked node  --Sink.add-->  GraphDef, or Graph

Attrs for types and counts follow from the inputs, defaults are filled in, and names are made unique. A node is checked
when it is made, so a mistake is reported where it is written.

An input is a `Tensor`; an `Operation`, which stands for its only or first output; the name of a tensor; a sequence of
these where the op takes several; or a number, a nested list or an array, which becomes a Const of the type that the op
wants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import numpy as np

from ...errors import InvalidArgumentError
from ..device_name import complete, parse_full_name
from ..dtypes import Array, DataType, base_type, from_numpy, parse_dtype
from ..node import Node
from ..ops.registry import ArgDef, OpSignature
from ..protos import NodeDef
from ..tensor import numpy_to_tensor
from ..tensor_id import parse_tensor_name
from .checks import array_of, check_attr_names, check_attr_values, check_is_value, is_several, requested_device
from .handles import Input, Operation, Tensor
from .node_builder import InputRef, NodeDefBuilder
from .sinks import Sink

_NODE_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\-/]*(?:>[A-Za-z0-9.][A-Za-z0-9_.\-/]*)*")
DType: TypeAlias = DataType | str


class Context(Protocol):
    """The inside of a loop or branch while its nodes are made; implemented in `structured.py`."""

    def admitted(
        self, node: str, inputs: list[Tensor | list[Tensor]], control: Sequence[str]
    ) -> tuple[list[Tensor | list[Tensor]], Sequence[str]]:
        """The inputs and control inputs of a new node, replaced by those that it has inside the loop or branch."""

    def add(self, node: str) -> None:
        """Registers a new node."""


class NodeMaker:
    """Makes nodes and passes them to a sink."""

    _read_device: Callable[[str], str] = staticmethod(requested_device)

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._scope = ""
        self._device = ""
        self._control: tuple[str, ...] = ()
        self.context: Context | None = None
        """the loop or branch that new nodes belong to"""

    # Making nodes

    def op(
        self,
        op: str,
        *inputs: Input,
        name: str = "",
        device: str = "",
        control: Input = (),
        attrs: Mapping[str, Any] | None = None,
        **more_attrs: Any,
    ) -> Operation:
        """Adds a node: one positional input per declared argument of the op.

        `name` defaults to the op's name and is made unique; `device` is merged with the surrounding `b.device(...)`;
        `control` is a node, or several, that run before. Attrs are keywords, or entries of `attrs` where a keyword
        would clash ("name") or is no identifier. Raises InvalidArgumentError for anything that does not fit the op, an
        impossible device and a tensor of another builder, NotFoundError for an unknown op.
        """
        signature = self._signature(op)
        all_attrs = dict(attrs or {}) | more_attrs
        check_attr_names(signature, all_attrs, name)
        requested = self._joined_device(device)
        if name and not (isinstance(name, str) and _NODE_NAME.fullmatch(name)):
            raise InvalidArgumentError(f"{name!r} is no name for a node; use letters, digits and ._-/ after a letter")
        full_name = self.unique_name(name or op)
        tensors = self._as_tensors(full_name, signature, inputs, all_attrs)
        self._check_own(full_name, tensors)
        waits_for: Sequence[str] = list(dict.fromkeys((*self._control, *self._node_names(control))))
        if self.context is not None:
            tensors, waits_for = self.context.admitted(full_name, tensors, waits_for)
        node = _checked_node(full_name, signature, tensors, all_attrs, waits_for, requested)
        operation = self._sink.add(self, node, signature, tensors, waits_for)
        if self.context is not None:
            self.context.add(full_name)
        return operation

    def placeholder(
        self, name: str, dtype: DType, shape: Sequence[int | None] | None = None, **keywords: Any
    ) -> Tensor:
        """A tensor to be fed; `shape` None leaves the rank open. Keywords as in `op`."""
        return self.op("Placeholder", name=name, dtype=_dtype(dtype), shape=shape, **keywords)[0]

    def constant(self, value: Any, dtype: DType | None = None, name: str = "Const", **keywords: Any) -> Tensor:
        """A Const of a number, nested list, bytes or array; `dtype` defaults to float32 or int32 for Python numbers."""
        array, kind = _as_array(value, None if dtype is None else _dtype(dtype))
        return self.op("Const", name=name, value=numpy_to_tensor(array, kind), dtype=kind, **keywords)[0]

    def variable(self, name: str, dtype: DType, shape: Sequence[int], **keywords: Any) -> Tensor:
        """The reference to a variable (VariableV2), uninitialised until an Assign has run."""
        return self.op("VariableV2", name=name, dtype=_dtype(dtype), shape=shape, **keywords)[0]

    def identity(self, value: Input, **keywords: Any) -> Tensor:
        """An Identity of a tensor, for example to give it another name or device."""
        return self.op("Identity", value, **keywords)[0]

    def group(self, *nodes: Input, name: str = "group_deps", **keywords: Any) -> Operation:
        """A NoOp that runs after all of `nodes`."""
        return self.op("NoOp", name=name, control=nodes, **keywords)

    def later(self, dtype: DType) -> Tensor:
        """A placeholder for an input that does not exist yet: the back edge of a loop, set by `close_loop`."""
        return Tensor(self, "", 0, _dtype(dtype))

    def close_loop(self, merge: Operation, value: Input, port: int = 1) -> None:
        """Connects `value`, the output of a NextIteration, to input `port` of a Merge that was made with `later`."""
        self._sink.close_loop(merge.name, port, self.tensor(value))

    # Devices, scopes and names

    @contextmanager
    def device(self, name: str) -> Iterator[None]:
        """Requests a device for all nodes made inside the block; open parts come from the surrounding `device`.

        Names are full or partial; "GPU:1" and "gpu:1" stand for "/device:GPU:1". Raises InvalidArgumentError for
        others.
        """
        outer, self._device = self._device, self._joined_device(name)
        try:
            yield
        finally:
            self._device = outer

    @contextmanager
    def scope(self, name: str) -> Iterator[str]:
        """Puts "name/" before the names of nodes made inside the block; yields the unique name without the slash."""
        outer, unique = self._scope, self.unique_name(name)
        self._scope = f"{unique}/"
        try:
            yield unique
        finally:
            self._scope = outer

    @contextmanager
    def part_of(self, context: Context | None) -> Iterator[None]:
        """Makes nodes of the block part of a loop or branch, or of none, without control inputs from outside."""
        outer = self.context, self._control
        self.context, self._control = context, ()
        try:
            yield
        finally:
            self.context, self._control = outer

    @contextmanager
    def outside_scopes(self) -> Iterator[None]:
        """Makes the nodes of the block with names in no scope: what is shared, whoever asks for it first."""
        outer, self._scope = self._scope, ""
        try:
            yield
        finally:
            self._scope = outer

    @contextmanager
    def control_dependencies(self, *nodes: Input) -> Iterator[None]:
        """Makes all nodes made inside the block wait for `nodes`."""
        outer = self._control
        self._control = (*outer, *(name for node in nodes for name in self._node_names(node)))
        try:
            yield
        finally:
            self._control = outer

    def unique_name(self, name: str) -> str:
        """`name` in the current scope, with "_1", "_2" ... appended if it is in use."""
        return self._sink.unique_name(self._scope + name)

    def in_scope(self, full_name: str) -> str:
        """The name relative to the current scope whose full name is `full_name`."""
        return full_name.removeprefix(self._scope)

    def operation(self, name: str) -> Operation:
        """The node of that name; InvalidArgumentError when there is none."""
        return self._sink.operation(self, name)

    def tensor(self, value: Input, dtype: DataType | None = None, name: str = "Const") -> Tensor:
        """The tensor that `value` stands for as an input; numbers and arrays become a Const of type `dtype`."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Operation):
            return value[0]
        if isinstance(value, str):
            parsed = parse_tensor_name(value)
            return self.operation(parsed.node)[parsed.index]
        if isinstance(value, Node):
            return self.operation(value.name)[0]
        check_is_value(value)
        return self.constant(value, dtype, name)

    # How inputs become attrs

    def _as_tensors(
        self, name: str, signature: OpSignature, inputs: Sequence[Input], attrs: Mapping[str, Any]
    ) -> list[Tensor | list[Tensor]]:
        """One entry per argument of the op; a value that is no tensor becomes a Const named after node and argument."""
        if len(inputs) != len(signature.input_args):
            names = ", ".join(arg.name for arg in signature.input_args)
            raise InvalidArgumentError(
                f"{signature.name} takes {len(signature.input_args)} inputs ({names}), {len(inputs)} given; "
                "write several tensors for one argument as a list",
                node=name,
            )
        for arg, value in zip(signature.input_args, inputs, strict=True):
            if (arg.number_attr or arg.type_list_attr) and not (is_several(value) or isinstance(value, Operation)):
                raise InvalidArgumentError(
                    f"{signature.name} takes a list of tensors as {arg.name!r}, got {type(value).__name__}; "
                    "write it as a list",
                    node=name,
                )
        wanted = _known_types(signature, inputs, attrs)
        tensors: list[Tensor | list[Tensor]] = []
        for arg, value in zip(signature.input_args, inputs, strict=True):
            dtype = arg.type or wanted.get(arg.type_attr)
            constant_name = f"{self.in_scope(name)}/{arg.name}"
            if arg.number_attr or arg.type_list_attr:
                tensors.append([self.tensor(item, dtype, constant_name) for item in value])
            else:
                tensors.append(self.tensor(value, dtype, constant_name))
        return tensors

    def _signature(self, op: str) -> OpSignature:
        """The signature of an op or function; NotFoundError for other names."""
        raise NotImplementedError

    def _check_own(self, name: str, tensors: Sequence[Tensor | list[Tensor]]) -> None:
        """InvalidArgumentError for a tensor of another builder: its name means another tensor here, or none."""
        for value in tensors:
            for tensor in value if isinstance(value, list) else (value,):
                if tensor.builder is not self:
                    raise InvalidArgumentError(
                        f"{tensor!r} belongs to another GraphBuilder; use tensors of this one, or their names",
                        node=name,
                    )

    def _node_names(self, nodes: Input) -> list[str]:
        """The names of one node or several, as control inputs."""
        return [self._node_name(node) for node in (nodes if is_several(nodes) else (nodes,))]

    def _node_name(self, node: Input) -> str:
        if isinstance(node, str):
            return self.operation(parse_tensor_name(node).node).name
        if isinstance(node, Tensor):
            return node.node
        if isinstance(node, (Operation, Node)):
            return node.name
        raise InvalidArgumentError(f"{type(node).__name__} is no node to wait for; give a node, a tensor or a name")

    def _joined_device(self, name: str) -> str:
        if name == "":
            return self._device
        requested = self._read_device(name)
        return str(complete(parse_full_name(requested), parse_full_name(self._device))) if self._device else requested


def _checked_node(
    name: str,
    signature: OpSignature,
    inputs: Sequence[Tensor | list[Tensor]],
    attrs: Mapping[str, Any],
    control: Sequence[str],
    device: str,
) -> NodeDef:
    """The node with all its attrs; InvalidArgumentError for inputs and attrs that do not fit its op."""
    builder = NodeDefBuilder(name, signature).device(device)
    for value in inputs:
        if isinstance(value, list):
            builder.input_list([_ref(item) for item in value])
        else:
            builder.input(*_ref(value))
    for key, attr in attrs.items():
        builder.attr(key, attr)
    for source in control:
        builder.control_input(source)
    node = builder.finalize()
    check_attr_values(name, signature, attrs, node)
    return node


def _known_types(signature: OpSignature, inputs: Sequence[Input], attrs: Mapping[str, Any]) -> dict[str, DataType]:
    """Values of type attrs, from the attrs given or from inputs that are tensors already."""
    known = {key: _dtype(attrs[key]) for key, attr in signature.attrs.items() if attr.type == "type" and key in attrs}
    for arg, value in zip(signature.input_args, inputs, strict=True):
        dtype = next((t.dtype for t in _tensors(arg, value)), None)
        if arg.type_attr and dtype is not None:
            known.setdefault(arg.type_attr, base_type(dtype))
    return known


def _tensors(arg: ArgDef, value: Input) -> Iterator[Tensor]:
    for item in value if arg.number_attr else (value,):
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, Operation):
            yield item[0]


def _ref(tensor: Tensor) -> InputRef:
    return InputRef(tensor.node or "later", tensor.port, tensor.dtype)


def _dtype(dtype: DType | type | np.dtype[Any]) -> DataType:
    if isinstance(dtype, DataType):
        return dtype
    if isinstance(dtype, str):
        return parse_dtype(dtype)
    try:
        return from_numpy(np.dtype(dtype))
    except TypeError:
        raise InvalidArgumentError(f"{dtype!r} is no element type; write one such as float32 or int64") from None


def _as_array(value: Any, dtype: DataType | None) -> tuple[Array, DataType]:
    """The value as an array of `dtype`; without one Python floats become float32 and ints int32."""
    if dtype is not None:
        return array_of(value, dtype), dtype
    array = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype({"f": np.float32, "i": np.int32, "S": object}.get(array.dtype.kind, array.dtype))
    return array, from_numpy(array)
