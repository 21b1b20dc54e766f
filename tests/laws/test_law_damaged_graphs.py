"""A damaged GraphDef raises an error of this package and no other exception.

Graphs of the corpus lose an attr, get a wrong one, are cut short or have bytes changed. Then they are imported, cut,
have their shapes inferred, and are opened in a session that prepares a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from hypothesis import given, settings, strategies as st

from partita.actors.sessions.local_session import open_session
from partita.errors import PartitaError
from partita.graph import GraphDef, graph_def_to_graph, infer_shapes, partition
from partita.graph.attrs import encode
from partita.graph.dtypes import DataType
from partita.graph.protos import AttrValue, NameAttrList, NodeDef
from partita.graph.tensor import numpy_to_tensor
from tests.conformance.corpus import COMMITTED

_LARGEST = 30_000  # bytes of a graph; larger ones have nothing that small ones have not
_FILES = [COMMITTED / line["path"] / "graph.pb" for line in json.loads((COMMITTED / "index.json").read_text())]
FILES = sorted(path for path in _FILES if path.exists() and path.stat().st_size < _LARGEST)

VALUES = [
    AttrValue(),
    AttrValue(i=3),
    AttrValue(i=-1),
    AttrValue(i=-(1 << 63)),
    AttrValue(s=b"\xff\xfe"),
    AttrValue(b=True),
    AttrValue(f=float("nan")),
    encode(DataType.STRING, "type"),
    encode(DataType.INVALID, "type"),
    encode(DataType.FLOAT_REF, "type"),
    AttrValue(placeholder="T"),
    AttrValue(func=NameAttrList(name="nobody")),
    AttrValue(tensor=numpy_to_tensor(np.zeros((2, 0), np.int64))),
    AttrValue(list=AttrValue.ListValue()),
    AttrValue(list=AttrValue.ListValue(i=[1, 2])),
    AttrValue(list=AttrValue.ListValue(s=[b"q"])),
    encode([DataType.INT32], "list(type)"),
    AttrValue(list=AttrValue.ListValue(func=[NameAttrList(name="f")])),
]


def some_node(draw: st.DrawFn, graph_def: GraphDef) -> NodeDef:
    """A node of the graph or of one of its functions."""
    groups = [graph_def.node, *(function.node_def for function in graph_def.library.function)]
    return draw(st.sampled_from(list(draw(st.sampled_from([group for group in groups if group])))))


def without_attr(draw: st.DrawFn, graph_def: GraphDef) -> None:
    node = some_node(draw, graph_def)
    if node.attr:
        del node.attr[draw(st.sampled_from(sorted(node.attr)))]


def with_other_attr(draw: st.DrawFn, graph_def: GraphDef) -> None:
    node = some_node(draw, graph_def)
    if node.attr:
        node.attr[draw(st.sampled_from(sorted(node.attr)))].CopyFrom(draw(st.sampled_from(VALUES)))


def with_other_op(draw: st.DrawFn, graph_def: GraphDef) -> None:
    ops = ["", "Nope", "Const", "_Recv", "_Send", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "_Arg"]
    some_node(draw, graph_def).op = draw(
        st.sampled_from([*ops, "_Retval", "PartitionedCall", "While", "If", "MapDefun"])
    )


def with_other_input(draw: st.DrawFn, graph_def: GraphDef) -> None:
    node = some_node(draw, graph_def)
    other = some_node(draw, graph_def).name
    texts = [other, f"^{other}", f"{other}:7", f"{other}:-1", f"{other}:{1 << 70}", "", ":0", "^", "nobody"]
    node.input.insert(draw(st.integers(0, len(node.input))), draw(st.sampled_from(texts)))


def with_other_device(draw: st.DrawFn, graph_def: GraphDef) -> None:
    names = ["bogus", "/device:GPU:9", "/job:x", "/device:CPU:1", ":::", "/device:CPU:*"]
    some_node(draw, graph_def).device = draw(st.sampled_from(names))


CHANGES: list[Callable[[st.DrawFn, GraphDef], None]] = [
    without_attr,
    with_other_attr,
    with_other_op,
    with_other_input,
    with_other_device,
]


@st.composite
def damaged_messages(draw: st.DrawFn) -> bytes:
    """A graph of the corpus with one change."""
    graph_def = GraphDef.FromString(draw(st.sampled_from(FILES)).read_bytes())
    draw(st.sampled_from(CHANGES))(draw, graph_def)
    return graph_def.SerializeToString()


@st.composite
def damaged_bytes(draw: st.DrawFn) -> bytes:
    """A graph of the corpus that is cut short or has a few bytes changed."""
    data = bytearray(draw(st.sampled_from(FILES)).read_bytes())
    if draw(st.booleans()):
        return bytes(data[: draw(st.integers(0, len(data) - 1))])
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


async def check(data: bytes) -> None:
    """Import, shape inference, partitioning and preparation raise only PartitaError."""
    with suppress(PartitaError):
        infer_shapes(graph_def_to_graph(data))
    with suppress(PartitaError):
        graph = graph_def_to_graph(data)
        graph.assign_devices(graph.requested_device_indices())
        partition(graph)
    with suppress(PartitaError):
        async with open_session(data, "cpu:3") as session:
            nodes = [node for node in session.graph.op_nodes() if node.op not in ("_Arg", "_Retval")]
            session.prepare([], [], [node.name for node in nodes])


@settings(max_examples=150)
@given(damaged_messages())
async def test_one_thing_wrong_in_a_graph_is_an_error_of_this_package(data: bytes) -> None:
    await check(data)


@settings(max_examples=100)
@given(damaged_bytes())
async def test_damaged_bytes_are_an_error_of_this_package(data: bytes) -> None:
    await check(data)
