"""Nodes of a GraphDef get other names, and with them frames and groups; TensorFlow 2.21 gives the same."""

from __future__ import annotations

import pytest

from partita.errors import NotFoundError
from partita.graph import NodeDef
from partita.graph.graphdef.node_names import add_prefix_and_suffix, add_prefix_to_groups, rename_groups


def _enter() -> NodeDef:
    node = NodeDef(name="enter", op="Enter", input=["x"])
    node.attr["frame_name"].s = b"test_frame"
    return node


def test_a_frame_is_renamed_with_its_enter() -> None:
    """Unless the caller says otherwise; the inputs stay."""
    node = _enter()
    add_prefix_and_suffix(node, "prefix/", "/suffix")
    assert (node.name, node.attr["frame_name"].s) == ("prefix/enter/suffix", b"prefix/test_frame/suffix")
    assert list(node.input) == ["x"]
    node = _enter()
    add_prefix_and_suffix(node, "prefix/", "/suffix", uniquify_frame_name=False)
    assert (node.name, node.attr["frame_name"].s) == ("prefix/enter/suffix", b"test_frame")


def test_other_nodes_have_no_frame() -> None:
    """An attr of that name may mean something else; an Enter must have it."""
    node = NodeDef(name="n", op="Neg")
    node.attr["frame_name"].s = b"f"
    add_prefix_and_suffix(node, "a/")
    assert (node.name, node.attr["frame_name"].s) == ("a/n", b"f")
    with pytest.raises(NotFoundError, match="No attr named 'frame_name'"):
        add_prefix_and_suffix(NodeDef(name="n", op="RefEnter"), "a/")


def test_groups_of_renamed_nodes_are_renamed() -> None:
    """Those of other nodes, and constraints of another kind, stay."""
    node = NodeDef(name="n", op="Neg")
    add_prefix_to_groups(node, {"x"}, "a/")
    assert "_class" not in node.attr
    node.attr["_class"].list.s.extend([b"loc:@x", b"loc:@y", b"other"])
    add_prefix_to_groups(node, {"x", "other"}, "a/")
    assert list(node.attr["_class"].list.s) == [b"loc:@a/x", b"loc:@y", b"other"]
    rename_groups(node, {"y": "z", "a/x": "w"})
    assert list(node.attr["_class"].list.s) == [b"loc:@w", b"loc:@z", b"other"]
