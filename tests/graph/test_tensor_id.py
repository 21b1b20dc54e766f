"""Names of tensors: TensorFlow's reading of every odd spelling, and printing that undoes parsing."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.graph.tensor_id import CONTROL_INDEX, TensorId, parse_tensor_name


@pytest.mark.parametrize(
    ("text", "node", "index"),
    [
        ("W1", "W1", 0),
        ("W1:2", "W1", 2),
        ("xyz1_17", "xyz1_17", 0),
        ("a/b:0", "a/b", 0),
        ("^foo", "foo", CONTROL_INDEX),
        ("^foo:1", "^foo", 1),
        ("^", "", CONTROL_INDEX),
        ("a:", "a:", 0),
        (":1", "", 1),
        ("a:x", "a:x", 0),
        ("a:1x", "a:1x", 0),
        ("a:-1", "a:-1", 0),
        ("a:b:3", "a:b", 3),
        ("a:007", "a", 7),
        ("a:4294967297", "a", 1),
        ("a:4294967295", "a", -1),
        ("a:\u0661", "a:\u0661", 0),
        ("", "", 0),
    ],
)
def test_parsing(text: str, node: str, index: int) -> None:
    """The index is parsed first; text that is no index belongs to the name."""
    assert parse_tensor_name(text) == TensorId(node, index)


@given(st.from_regex(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*", fullmatch=True), st.integers(-1, 2**31 - 1))
def test_printing_undoes_parsing(node: str, index: int) -> None:
    """Printing and parsing a tensor or control dependency of any legal node gives the same id."""
    tensor = TensorId(node, index)
    assert parse_tensor_name(str(tensor)) == tensor
    assert tensor.is_control == str(tensor).startswith("^")
