"""The nodes through which tensors are fed."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.graph.analysis.fed_nodes import fed_tensor, feed_node_name
from partita.graph.tensor_id import TensorId


@given(
    node=st.text("ab/_0", min_size=1, max_size=8),
    index=st.integers(0, 30),
    position=st.integers(0, 30),
)
def test_the_name_of_a_feed_tells_its_tensor(node: str, index: int, position: int) -> None:
    """Also of a tensor whose node has a name that ends like one of a feed."""
    assert fed_tensor(feed_node_name(TensorId(node, index), position)) == TensorId(node, index)


@pytest.mark.parametrize("name", ["x", "_arg_x", "_arg_x_0", "_arg_x_0_", "_retval_x_0_0", "arg_x_0_0"])
def test_other_names_are_those_of_no_feed(name: str) -> None:
    """An argument of a function may have any name."""
    assert fed_tensor(name) is None
