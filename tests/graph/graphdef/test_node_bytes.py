"""Nodes cut out of bytes are the nodes that a protobuf library reads."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given, strategies as st

from partita.graph.debug_info import debug_info_field
from partita.graph.graphdef.node_bytes import NodeBytes
from partita.graph.protos import GraphDef, LazyGraphDef, LazyNodeDef, NodeDef
from partita.graph.varint import varint

_TEXT = st.sampled_from(["", "a", "b/\u00e9", "c" * 127, "d" * 128, "e" * 20_000])  # sizes of one to three bytes
_FIELDS = st.lists(
    st.one_of(
        st.builds(lambda text: NodeDef(name=text), _TEXT),
        st.builds(lambda text: NodeDef(op=text), _TEXT),
        st.builds(lambda texts: NodeDef(input=texts), st.lists(_TEXT, max_size=3)),
        st.builds(lambda text: NodeDef(device=text), _TEXT),
        st.builds(lambda text: LazyNodeDef(attr=[b"\x0a\x01" + text.encode()[:1]]), st.sampled_from("xyz")),
        st.builds(lambda text: LazyNodeDef(experimental_debug_info=text.encode()), _TEXT),
        st.just(b"\x92\x01\x02hi"),  # a field that no node has
    ),
    max_size=6,
)
"""the fields of a node in any order, some several times"""


def _serialised(fields: list[NodeDef | LazyNodeDef | bytes]) -> bytes:
    return b"".join(field if isinstance(field, bytes) else field.SerializeToString() for field in fields)


def _as_field(node: bytes) -> bytes:
    return b"\x0a" + varint(len(node)) + node


@given(st.lists(st.builds(_serialised, _FIELDS), max_size=30), st.integers(1, 40))
def test_texts_are_the_fields_of_the_messages(nodes: list[bytes], size: int) -> None:
    """In chunks of any size: names, inputs, and a rest that has all other fields, whatever order they came in."""
    data = debug_info_field(b"\x0a\x00") + b"".join(map(_as_field, nodes)) + b"\x22\x02\x08\x01"
    lazy = LazyGraphDef.FromString(data)
    cut = NodeBytes(lazy, data)
    assert len(cut) == len(nodes)
    for first in range(0, len(nodes), size):
        expected = lazy.node[first : first + size]
        texts = cut.texts(first, first + size)
        assert texts.names == [node.name for node in expected]
        ends = [0, *accumulate(texts.counts)]
        assert [texts.inputs[a:b] for a, b in pairwise(ends)] == [list(node.input) for node in expected]
        for rest, node in zip(texts.rests, expected, strict=True):
            parsed = LazyNodeDef.FromString(rest)
            assert not parsed.name
            assert not parsed.input
            assert parsed.SerializeToString() == rest
            parsed.name = node.name
            parsed.input.extend(node.input)
            assert parsed == node


def test_a_node_of_many_inputs_is_cut_as_one_of_few() -> None:
    """Inputs of nodes that have more than all others are cut one by one."""
    graph_def = GraphDef(node=[NodeDef(name=f"n{i}", input=["n0"] * i) for i in range(20)])
    graph_def.node.add(name="all", input=[f"{'x' * 130}{i}" for i in range(500)])
    data = graph_def.SerializeToString()
    texts = NodeBytes(LazyGraphDef.FromString(data), data).texts(0, len(graph_def.node))
    assert texts.counts == [*range(20), 500]
    assert texts.inputs == [text for node in graph_def.node for text in node.input]
