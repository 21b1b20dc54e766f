"""What equal nodes share: op, attrs and port types, resolved once.

Flows in: an op name and the serialised attr entries of a node (`LazyNodeDef.attr`). Flows out: `NodeProperties`, the
same object for the same request, so that whatever depends on op and attrs alone can be memoised by identity. Always
holds: properties never change; attrs stay serialised until somebody reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError

from ...errors import InvalidArgumentError, NotFoundError
from ..attrs import attr_value, decode, encode, guessed_type
from ..dtypes import DataType
from ..protos import AttrValue, LazyAttr
from .registry import OpSignature, lookup_op
from .type_inference import input_output_types

_SMALL = 64  # entries up to this many bytes are split once and shared
_split_entries: dict[bytes, tuple[str, bytes]] = {}


def split_entry(entry: bytes) -> tuple[str, bytes]:
    """Name and serialised AttrValue of one serialised attr entry; InvalidArgumentError for bytes that are none."""
    found = _split_entries.get(entry)
    if found is None:
        try:
            message = LazyAttr.FromString(entry)
        except DecodeError:
            raise InvalidArgumentError(f"the {len(entry)} bytes of an attr are damaged") from None
        found = message.key, message.value
        if len(entry) <= _SMALL:
            _split_entries[entry] = found
    return found


def join_entry(name: str, value: bytes) -> bytes:
    """The serialised attr entry of a name and a serialised AttrValue."""
    return LazyAttr(key=name, value=value).SerializeToString()


class Attrs(Mapping[str, Any]):
    """Attrs of a node by name, decoded when first read.

    One that the node leaves out reads as its op's default. Iteration, `len` and `in` tell of those that are there.
    """

    __slots__ = ("_decoded", "_defaults", "_serialised")

    def __init__(self, entries: Iterable[bytes], op_def: OpSignature) -> None:
        self._serialised = dict(map(split_entry, entries))
        self._defaults = op_def.defaults
        self._decoded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """The value; NotFoundError for an attr that is not there and has no default."""
        if name not in self._decoded:
            self._decoded[name] = decode(self.serialised(name))
        return self._decoded[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value, `default` for an attr that is not there and has no default of its own."""
        return default if self.find(name) is None else self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._serialised)

    def __len__(self) -> int:
        return len(self._serialised)

    def __contains__(self, name: object) -> bool:
        return name in self._serialised

    def find(self, name: str) -> bytes | None:
        """The AttrValue of that name as bytes, the default's if it is left out, or None."""
        found = self._serialised.get(name)
        return self._defaults.get(name) if found is None else found

    def serialised(self, name: str) -> bytes:
        """The AttrValue of that name as bytes; NotFoundError as for `attrs[name]`."""
        found = self.find(name)
        if found is None:
            raise NotFoundError(f"No attr named {name!r} in NodeDef:")
        return found

    def message(self, name: str) -> AttrValue:
        """The AttrValue of that name; NotFoundError as for `attrs[name]`."""
        return attr_value(self.serialised(name))

    def __repr__(self) -> str:
        return f"Attrs({dict(self)!r})"


class NodeProperties:
    """Op, attrs and flattened port types that any number of nodes may share. Never changes."""

    __slots__ = ("_attrs", "_entries", "input_types", "op_def", "output_types")

    def __init__(
        self,
        op_def: OpSignature,
        entries: tuple[bytes, ...],
        input_types: tuple[DataType, ...],
        output_types: tuple[DataType, ...],
    ) -> None:
        self.op_def = op_def
        self._entries = entries
        self.input_types = input_types
        self.output_types = output_types
        self._attrs: Attrs | None = None

    @property
    def entries(self) -> tuple[bytes, ...]:
        """Serialised entries of the attr map."""
        return self._entries

    @property
    def op(self) -> str:
        """Name of the op."""
        return self.op_def.name

    @property
    def attrs(self) -> Attrs:
        """Attrs by name, decoded when read."""
        if self._attrs is None:
            self._attrs = Attrs(self.entries, self.op_def)
        return self._attrs

    def with_attr(self, name: str, value: AttrValue) -> NodeProperties:
        """These properties with one attr set (added or overwritten)."""
        entries = [entry for entry in self.entries if split_entry(entry)[0] != name]
        entries.append(join_entry(name, value.SerializeToString(deterministic=True)))
        return make_properties(self.op_def, sorted(entries, key=split_entry))

    def without_attr(self, name: str) -> NodeProperties:
        """These properties with one attr taken away, if it is there."""
        return make_properties(self.op_def, [entry for entry in self.entries if split_entry(entry)[0] != name])

    def __repr__(self) -> str:
        return f"<NodeProperties {self.op} {dict(self.attrs)!r}>"


def make_properties(op_def: OpSignature, entries: Iterable[bytes]) -> NodeProperties:
    """Properties of an op with exactly these attr entries.

    Raises NotFoundError or InvalidArgumentError where the port types cannot be told from the attrs.
    """
    kept = tuple(entries)
    input_types, output_types = input_output_types(op_def, Attrs(kept, op_def))
    return NodeProperties(op_def, kept, input_types, output_types)


def properties_of(op: str, attrs: Mapping[str, Any]) -> NodeProperties:
    """Properties of an op from attr values (Python forms or AttrValue messages), defaults filled in.

    Attrs that the op does not declare are kept when their name starts with "_" and the value is a message.
    """
    op_def = lookup_op(op)
    serialised = dict(op_def.defaults)
    for name, value in attrs.items():
        declared = op_def.attrs[name].type if name in op_def.attrs else guessed_type(value)
        serialised[name] = encode(value, declared).SerializeToString(deterministic=True)
    return make_properties(op_def, [join_entry(name, serialised[name]) for name in sorted(serialised)])


class PropertiesCache:
    """Resolves the raw attrs of many nodes, sharing the work between nodes that are alike.

    Two levels: nodes with the same op and the same entries share one `NodeProperties`; nodes that differ only in large
    values (the tensors of constants) share everything that depends on the small ones.
    """

    def __init__(self, *, add_defaults: bool, lookup: Callable[[str], OpSignature] = lookup_op) -> None:
        """`add_defaults` fills in attrs that a node leaves out; `lookup` finds signatures (functions are ops too)."""
        self._add_defaults = add_defaults
        self._lookup = lookup
        self._exact: dict[tuple[str, tuple[bytes, ...]], NodeProperties] = {}
        self._templates: dict[tuple[str, tuple[bytes | str, ...]], NodeProperties] = {}

    def resolve(self, op: str, entries: tuple[bytes, ...]) -> NodeProperties:
        """The properties of a node; raises what `lookup_op` and `make_properties` raise."""
        key = op, entries
        found = self._exact.get(key)
        if found is None:
            small = all(len(entry) <= _SMALL for entry in entries)
            found = self._create(op, entries) if small else self._from_template(op, entries)
            if small:
                self._exact[key] = found
        return found

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
    """Whether port types may depend on that attr: then nodes that differ in it cannot share a template."""
    declared = template.op_def.attrs.get(attr)
    return declared is None or declared.type not in ("tensor", "shape", "list(tensor)", "list(shape)", "string", "func")
