"""Law 3: parsing what was serialised, and exporting what was imported, gives back the same graph.

Import may normalise: it adds defaults, writes "x" for "x:0", and sorts control inputs and removes repeated ones. So the
first import and export keeps the meaning, and a second one keeps every byte.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from partita.graph.attrs import decode, encode
from partita.graph.checked_import import import_graph_def
from partita.graph.device_name import parse_full_name
from partita.graph.dtypes import Array, from_numpy
from partita.graph.exporter import to_graph_def
from partita.graph.graph import Graph
from partita.graph.graphdef.files import graph_def_from_text, graph_def_to_text, load_graph_def, save_graph_def
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import AttrValue, GraphDef, TensorProto
from partita.graph.tensor import numpy_to_tensor, tensor_to_numpy
from tests.conformance.compare import ComparedNode, same_attr
from tests.conformance.corpus import Case, cases
from tests.strategies import GraphCase, attr_values, full_device_names, graph_cases, tensor_protos, tensors

CASES = [case for family in ("elementary", "random", "gpu_partition") for case in cases(family)]


def canonical(graph_def: GraphDef) -> bytes:
    """Bytes of a message, with map entries in a fixed order."""
    return graph_def.SerializeToString(deterministic=True)


def meaning(graph_def: GraphDef) -> dict[str, ComparedNode]:
    """The nodes after the normalisation that import may do."""
    return {node.name: ComparedNode(node) for node in graph_def.node}


def assert_same_meaning(a: GraphDef, b: GraphDef) -> None:
    """Same nodes with the same ops, devices, inputs and attrs, and the same versions."""
    ours, theirs = meaning(a), meaning(b)
    assert ours.keys() == theirs.keys()
    for name, node in ours.items():
        other = theirs[name]
        assert (node.op, node.device, node.data, node.control) == (other.op, other.device, other.data, other.control)
        assert node.attrs.keys() == other.attrs.keys()
        assert all(same_attr(value, other.attrs[key]) for key, value in node.attrs.items()), name
    assert canonical(GraphDef(versions=a.versions)) == canonical(GraphDef(versions=b.versions))


def assert_same_array(a: Array, b: Array) -> None:
    """Equal bit for bit, NaN included."""
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


@given(graph_cases())
def test_import_then_export_keeps_a_random_graph(case: GraphCase) -> None:
    """One trip keeps the meaning; a second one keeps every byte."""
    once = to_graph_def(graph_def_to_graph(case.on_one_device()))
    assert_same_meaning(case.on_one_device(), once)
    assert canonical(to_graph_def(graph_def_to_graph(once))) == canonical(once)


@given(graph_cases())
def test_joining_an_empty_graph_is_importing(case: GraphCase) -> None:
    """`import_graph_def` into an empty graph gives the nodes of `graph_def_to_graph`."""
    graph = Graph()
    import_graph_def(case.graph_def, graph)
    assert meaning(to_graph_def(graph)).keys() == meaning(case.graph_def).keys()
    assert_same_meaning(GraphDef(node=to_graph_def(graph).node), GraphDef(node=case.graph_def.node))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_import_then_export_keeps_files_of_tensorflow(case: Case) -> None:
    """The same for graphs that TensorFlow wrote, with loops."""
    original = case.graph_def()
    once = to_graph_def(graph_def_to_graph(original))
    assert_same_meaning(original, once)
    assert canonical(to_graph_def(graph_def_to_graph(once))) == canonical(once)


@pytest.mark.parametrize("case", cases("elementary"), ids=lambda case: case.path)
def test_text_and_bytes_are_one_graph(case: Case) -> None:
    """A .pbtxt and its .pb give the same graph, and a printed graph parses to itself."""
    graph_def = case.graph_def()
    assert canonical(load_graph_def(case.folder / "graph.pbtxt")) == canonical(graph_def)
    assert canonical(graph_def_from_text(graph_def_to_text(graph_def))) == canonical(graph_def)


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt"])
def test_a_file_reads_back_as_what_was_saved(suffix: str, tmp_path: Path) -> None:
    """Loading gives the saved graph, from text and from binary files."""
    graph_def = CASES[0].graph_def()
    save_graph_def(graph_def, tmp_path / f"graph{suffix}")
    assert canonical(load_graph_def(tmp_path / f"graph{suffix}")) == canonical(graph_def)


@given(tensor_protos())
def test_every_encoding_of_a_tensor_decodes_to_it(pair: tuple[TensorProto, Array]) -> None:
    """Raw bytes, typed fields and shortened typed fields decode to the same array."""
    proto, array = pair
    assert_same_array(tensor_to_numpy(proto), array)


@given(tensors())
def test_a_tensor_survives_its_message(array: Array) -> None:
    """numpy -> TensorProto -> bytes -> TensorProto -> numpy is the identity; the result is read-only."""
    again = tensor_to_numpy(TensorProto.FromString(numpy_to_tensor(array).SerializeToString()))
    assert_same_array(again, array)
    assert not again.flags.writeable


@given(attr_values())
def test_an_attr_survives_python(pair: tuple[AttrValue, str]) -> None:
    """AttrValue -> Python -> AttrValue is the identity, from the message and from its bytes."""
    value, kind = pair
    assert same_attr(encode(decode(value), kind), value)
    assert same_attr(encode(decode(value.SerializeToString()), kind), value)


@given(full_device_names())
def test_a_device_name_survives_parsing(name: str) -> None:
    """A full name is printed as it was read."""
    assert str(parse_full_name(name)) == name


@given(tensors())
def test_an_element_type_survives_numpy(array: Array) -> None:
    """The DataType of an array's message is that of the array."""
    assert int(numpy_to_tensor(array).dtype) == int(from_numpy(array))
    assert tensor_to_numpy(numpy_to_tensor(np.asarray(array))).shape == array.shape
