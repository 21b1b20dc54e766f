"""Gradients of marks and of the einsum that XLA's ops have."""

from __future__ import annotations

from tests.graph.gradients.numeric import check, normal


async def test_marks_pass_gradients_on() -> None:
    """What flows back is marked too."""
    await check(lambda b, x: b.op("XlaSharding", b.op("Tanh", x)), normal(2, 3))
