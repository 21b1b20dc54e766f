"""The properties of a node: op, attrs and port types. Equal nodes share one object.

Properties are made from the op and the serialised attr entries (`LazyNodeDef.attr`). The same request gives the same
object, so what depends on op and attrs alone can be memoised by identity. Properties do not change; an attr is decoded
when it is first read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Protocol

from google.protobuf.message import DecodeError

from ...errors import InvalidArgumentError, NotFoundError
from ..attrs import attr_value, decode, encode, guessed_type
from ..dtypes import DataType
from ..protos import AttrValue, LazyAttr, LazyNodeDef
from ..tensor import full_shape
from .registry import OpSignature, lookup_op
from .type_inference import input_output_types

_SMALL = 64  # bytes: shorter entries are split once and cached
_split_entries: dict[bytes, tuple[str, bytes]] = {}

_GROUP = b"loc:@"


def split_entry(entry: bytes) -> tuple[str, bytes]:
    """Name and serialised AttrValue of one serialised attr entry; InvalidArgumentError for damaged bytes."""
    name_and_value = _split_entries.get(entry)
    if name_and_value is None:
        try:
            message = LazyAttr.FromString(entry)
        except DecodeError:
            raise InvalidArgumentError(f"the {len(entry)} bytes of an attr are damaged") from None
        name_and_value = message.key, message.value
        if len(entry) <= _SMALL:
            _split_entries[entry] = name_and_value
    return name_and_value


def join_entry(name: str, value: bytes) -> bytes:
    """The serialised attr entry of a name and a serialised AttrValue."""
    return LazyAttr(key=name, value=value).SerializeToString()


class Attrs(Mapping[str, Any]):
    """Attrs of a node by name, decoded when first read.

    Reading an attr that the node leaves out gives the op's default. Iteration, `len` and `in` ignore such attrs.
    """

    __slots__ = ("_decoded", "_defaults", "_serialised", "fitting")

    def __init__(self, entries: Iterable[bytes], op_def: OpSignature) -> None:
        self.fitting: OpSignature | None = None
        """the signature whose declarations all values were found to fit (`graph/validate.py`)"""
        self._serialised = dict(map(split_entry, entries))
        self._defaults = op_def.defaults
        self._decoded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """The value; NotFoundError for an attr that the node leaves out and that has no default."""
        if name not in self._decoded:
            self._decoded[name] = decode(self.serialised(name))
        return self._decoded[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or `default` for an attr that the node leaves out and that has no default of its own."""
        return default if self.find(name) is None else self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._serialised)

    def __len__(self) -> int:
        return len(self._serialised)

    def __contains__(self, name: object) -> bool:
        return name in self._serialised

    def find(self, name: str) -> bytes | None:
        """The serialised AttrValue, of the default for an attr that the node leaves out, or None."""
        value = self._serialised.get(name)
        return self._defaults.get(name) if value is None else value

    def serialised(self, name: str) -> bytes:
        """The serialised AttrValue; NotFoundError as for `attrs[name]`."""
        value = self.find(name)
        if value is None:
            raise NotFoundError(f"No attr named '{name}' in NodeDef:")
        return value

    def message(self, name: str) -> AttrValue:
        """The AttrValue message; NotFoundError as for `attrs[name]`."""
        return attr_value(self.serialised(name))

    def tensor_shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without decoding its elements; raises as `attrs[name]`."""
        value = self._decoded.get(name)
        return full_shape(self.message(name).tensor) if value is None else tuple(value.shape)

    def __repr__(self) -> str:
        return f"Attrs({dict(self)!r})"


class NodeProperties:
    """Op, attrs and flattened port types, shared by any number of nodes. Immutable.

    `remarks` is a serialised NodeDef with what a file says of a node and nothing here reads: its debug info and its
    experimental type.
    """

    __slots__ = ("_attrs", "_entries", "input_types", "op_def", "output_types", "remarks")

    def __init__(
        self,
        op_def: OpSignature,
        entries: tuple[bytes, ...],
        input_types: tuple[DataType, ...],
        output_types: tuple[DataType, ...],
        remarks: bytes = b"",
    ) -> None:
        self.op_def = op_def
        self.remarks = remarks
        self._entries = entries
        self.input_types = input_types
        self.output_types = output_types
        self._attrs: Attrs | None = None

    @property
    def entries(self) -> tuple[bytes, ...]:
        """The serialised entries of the attr map."""
        return self._entries

    @property
    def op(self) -> str:
        """Name of the op."""
        return self.op_def.name

    @property
    def attrs(self) -> Attrs:
        """Attrs by name, decoded when first read."""
        if self._attrs is None:
            self._attrs = Attrs(self.entries, self.op_def)
        return self._attrs

    @property
    def colocated_with(self) -> list[str]:
        """Names of the nodes to share a device with, from the attr `_class`; one that is no list of text names none."""
        groups = self.attrs.get("_class", ())
        entries = groups if isinstance(groups, tuple) else ()
        texts = [entry for entry in entries if isinstance(entry, bytes) and entry.startswith(_GROUP)]
        return [text.removeprefix(_GROUP).decode(errors="replace") for text in texts]

    def with_attr(self, name: str, value: AttrValue) -> NodeProperties:
        """A copy with one attr added or replaced."""
        entries = [entry for entry in self.entries if split_entry(entry)[0] != name]
        entries.append(join_entry(name, value.SerializeToString(deterministic=True)))
        return make_properties(self.op_def, sorted(entries, key=split_entry)).with_remarks(self.remarks)

    def without_attr(self, name: str) -> NodeProperties:
        """A copy without one attr."""
        entries = [entry for entry in self.entries if split_entry(entry)[0] != name]
        return make_properties(self.op_def, entries).with_remarks(self.remarks)

    def with_remarks(self, remarks: bytes) -> NodeProperties:
        """A copy with these remarks."""
        if remarks == self.remarks:
            return self
        return NodeProperties(self.op_def, self.entries, self.input_types, self.output_types, remarks)

    @property
    def debug_info(self) -> bytes:
        """The remarks without the experimental type."""
        info = LazyNodeDef.FromString(self.remarks).experimental_debug_info if self.remarks else b""
        return LazyNodeDef(experimental_debug_info=info).SerializeToString()

    def __repr__(self) -> str:
        return f"<NodeProperties {self.op} {dict(self.attrs)!r}>"


class Details(Protocol):
    """A table of properties that a node does not share with its kind; several nodes may share a row."""

    def properties(self, shared: NodeProperties, row: int) -> NodeProperties:
        """All properties of a node with the shared part `shared`; the same object every time."""


def make_properties(op_def: OpSignature, entries: Iterable[bytes]) -> NodeProperties:
    """Properties of an op with exactly these attr entries.

    Raises NotFoundError or InvalidArgumentError if the attrs do not determine the port types.
    """
    attr_entries = tuple(entries)
    input_types, output_types = input_output_types(op_def, Attrs(attr_entries, op_def))
    return NodeProperties(op_def, attr_entries, input_types, output_types)


def properties_of(op: str, attrs: Mapping[str, Any]) -> NodeProperties:
    """Properties of an op from attr values (Python values or AttrValue messages), with defaults added.

    Attrs that the op does not declare are kept when their name starts with "_" and the value is a message.
    """
    op_def = lookup_op(op)
    serialised = dict(op_def.defaults)
    for name, value in attrs.items():
        declared = op_def.attrs[name].type if name in op_def.attrs else guessed_type(value)
        serialised[name] = encode(value, declared).SerializeToString(deterministic=True)
    return make_properties(op_def, [join_entry(name, serialised[name]) for name in sorted(serialised)])


@cache
def no_op_properties() -> NodeProperties:
    """The properties of source and sink, which all graphs share."""
    return properties_of("NoOp", {})


class PropertiesCache:
    """Makes the properties of many nodes and shares the work between similar nodes.

    Nodes with the same op and the same entries share one `NodeProperties`. Nodes that differ only in large values, such
    as the tensors of constants, share a template: port types and small entries.
    """

    def __init__(self, *, add_defaults: bool, lookup: Callable[[str], OpSignature] = lookup_op) -> None:
        """`add_defaults` adds attrs that a node leaves out; `lookup` gives signatures of ops and functions."""
        self._add_defaults = add_defaults
        self._lookup = lookup
        self._exact: dict[tuple[str, tuple[bytes, ...]], NodeProperties] = {}
        self._templates: dict[tuple[str, tuple[bytes | str, ...]], NodeProperties] = {}
        self._remarked: dict[tuple[NodeProperties, bytes], NodeProperties] = {}

    def remarked(self, properties: NodeProperties, remarks: bytes) -> NodeProperties:
        """The properties with remarks; the same object for the same remarks."""
        key = properties, remarks
        return self._remarked.get(key) or self._remarked.setdefault(key, properties.with_remarks(remarks))

    def resolve(self, op: str, entries: tuple[bytes, ...]) -> NodeProperties:
        """The properties of a node; raises the errors of `lookup_op` and `make_properties`."""
        key = op, entries
        properties = self._exact.get(key)
        if properties is None:
            small = all(len(entry) <= _SMALL for entry in entries)
            properties = self._create(op, entries) if small else self._from_template(op, entries)
            if small:
                self._exact[key] = properties
        return properties

    def _create(self, op: str, entries: tuple[bytes, ...]) -> NodeProperties:
        op_def = self._lookup(op)
        named = {split_entry(entry)[0]: entry for entry in entries}
        if self._add_defaults:
            for name, value in op_def.defaults.items():
                if name not in named:
                    named[name] = join_entry(name, value)
        return make_properties(op_def, [named[name] for name in sorted(named)])

    def _from_template(self, op: str, entries: tuple[bytes, ...]) -> NodeProperties:
        large = {split_entry(entry)[0]: entry for entry in entries if len(entry) > _SMALL}
        key = op, tuple(entry if len(entry) <= _SMALL else "" for entry in entries) + tuple(large)
        template = self._templates.get(key)
        if template is None or any(not name.startswith("_") and _decides_types(template, name) for name in large):
            template = self._templates[key] = self._create(op, entries)
            return template
        merged = tuple(large.get(split_entry(entry)[0], entry) for entry in template.entries)
        return NodeProperties(template.op_def, merged, template.input_types, template.output_types)


def _decides_types(template: NodeProperties, attr: str) -> bool:
    """Whether port types may depend on an attr, so that nodes which differ in it cannot share a template."""
    declared = template.op_def.attrs.get(attr)
    return declared is None or declared.type not in ("tensor", "shape", "list(tensor)", "list(shape)", "string", "func")
