"""Every op refuses contradicting `_output_shapes` as TensorFlow 2.21 refuses them, but for what is noted as known."""

from __future__ import annotations

import pytest

from tests.graph.shape_inference.sweep.ours import KNOWN, compared, differences

NUM_PARTS = 4


@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_contradictions_are_refused_as_tensorflow_refuses_them(part: int) -> None:
    """For each output of a node of each op; `ours` writes the list of what is known to differ."""
    known = KNOWN.read_text().splitlines()
    assert [line for line in differences(part, NUM_PARTS) if line not in known] == []


def test_every_op_with_a_rule_is_compared() -> None:
    """By graphs made of signatures and by recorded calls; few answers differ, and they may only become fewer."""
    ops = [op for _, op, _ in compared()]
    assert (len(ops), len(set(ops)), len(KNOWN.read_text().splitlines())) == (2661, 1232, 45)
