"""The generated modules declare what the .proto files declare, and read what TensorFlow wrote."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.resources import files

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor

from partita.graph import GraphDef
from partita.graph.protos import LazyGraphDef
from tests.conformance.corpus import cases

_FOLDER = files("partita.graph.protos")
_NAMES = sorted(path.name.removesuffix(".proto") for path in _FOLDER.iterdir() if path.name.endswith(".proto"))
_SCALAR_NAMES = [
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32"),
    *("bool", "string", "bytes", "uint32", "sfixed32", "sfixed64"),
]
_SCALARS = {getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name for name in _SCALAR_NAMES}


def _statements(text: str) -> set[str]:
    """Every declaration of a .proto text, qualified by the messages around it, without comments and layout."""
    scope: list[str] = []
    statements = set()
    for token in re.findall(r"[^;{}]+[;{]|}", re.sub(r"//.*", "", text)):
        statement = " ".join(token.split())
        if statement == "}":
            scope.pop()
        elif statement.endswith("{"):
            scope.append(statement.removesuffix("{").strip())
        elif not statement.startswith(("syntax", "package", "import", "reserved")):
            owners = "/".join(part for part in scope if not part.startswith("oneof "))
            statements.add(f"{owners}: {statement.removesuffix(';')}")
    return statements


def _type(field: FieldDescriptor) -> str:
    described = field.message_type or field.enum_type
    if described is None:
        return _SCALARS[field.type]
    return str(described.full_name).removeprefix("partita.")


def _label(field: FieldDescriptor) -> str:
    owner = field.containing_oneof  # that of an optional number is made up, after its name
    is_optional = owner is not None and owner.name == f"_{field.name}"
    return "repeated " if field.is_repeated else "optional " if is_optional else ""


def _declaration(field: FieldDescriptor) -> str:
    options = field.GetOptions()
    set_options = {"deprecated = true": options.deprecated, "packed = false": options.HasField("packed")}
    in_brackets = "".join(f" [{option}]" for option, is_set in set_options.items() if is_set)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        kind = f"map<{_type(entry['key'])}, {_type(entry['value'])}>"
    else:
        kind = f"{_label(field)}{_type(field)}"
    return f"{kind} {field.name} = {field.number}{in_brackets}"


def _described(scope: str, enums: list[EnumDescriptor], messages: list[Descriptor]) -> set[str]:
    statements = {f"{scope}enum {enum.name}: {value.name} = {value.number}" for enum in enums for value in enum.values}
    for message in messages:
        if not message.GetOptions().map_entry:
            statements |= {f"{scope}message {message.name}: {_declaration(field)}" for field in message.fields}
            inner = f"{scope}message {message.name}/"
            statements |= _described(inner, list(message.enum_types), list(message.nested_types))
    return statements


def _file(name: str) -> FileDescriptor:
    descriptor: FileDescriptor = import_module(f"partita.graph.protos.{name}_pb2").DESCRIPTOR
    return descriptor


@pytest.mark.parametrize("name", _NAMES)
def test_generated_modules_follow_their_proto_files(name: str) -> None:
    """Every field, enum value and number of a .proto file is in the generated module, and nothing else."""
    descriptor = _file(name)
    enums, messages = descriptor.enum_types_by_name.values(), descriptor.message_types_by_name.values()
    text = _FOLDER.joinpath(f"{name}.proto").read_text()
    assert _described("", list(enums), list(messages)) == _statements(text)


def test_file_and_package_names_are_our_own() -> None:
    """No descriptor is called as TensorFlow's, so that both can live in one process."""
    for name in _NAMES:
        assert _file(name).package == "partita"
        assert _file(name).name.startswith("partita/")


def test_lazy_and_full_messages_are_one_on_the_wire() -> None:
    """A GraphDef that TensorFlow wrote passes through the lazy form without losing or changing anything."""
    checked = 0
    for case in cases("elementary"):
        data = (case.folder / "graph.pb").read_bytes()
        assert GraphDef.FromString(LazyGraphDef.FromString(data).SerializeToString()) == GraphDef.FromString(data)
        checked += 1
    assert checked >= 20
