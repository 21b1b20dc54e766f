"""Gradients of ops that round to a grid."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from tests.graph.gradients.numeric import SINGLE, check, single

GRID = single(np.array([[-3.0, -0.31, 0.2], [0.77, 1.4, 2.9]]))


ROUNDED: dict[str, tuple[str, tuple[object, ...], dict[str, object]]] = {
    "args": ("FakeQuantWithMinMaxArgs", (), {"min": -1.0, "max": 1.0}),
    "vars": ("FakeQuantWithMinMaxVars", (-1.0, 1.0), {}),
    "channels": ("FakeQuantWithMinMaxVarsPerChannel", ([-1.0, -2, -1], [1.0, 2, 1]), {}),
    "v2": ("QuantizeAndDequantizeV2", (-1.0, 1.0), {"range_given": True}),
    "v4": ("QuantizeAndDequantizeV4", (-1.0, 1.0), {"range_given": True}),
    "v4 axis": ("QuantizeAndDequantizeV4", ([-1.0, -2, -1], [1.0, 2, 1]), {"range_given": True, "axis": 1}),
}


@pytest.mark.parametrize("name", ROUNDED)
async def test_rounding_is_passed_through(name: str) -> None:
    """Inside of the range the gradient is that of the identity, whatever the steps."""
    op, bounds, attrs = ROUNDED[name]

    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        rounded = b.op(op, x, *(b.constant(single(np.array(bound))) for bound in bounds), attrs=attrs)[0]
        inside = b.op("SelectV2", b.constant(np.abs(GRID) < 1), rounded, b.constant(0.0))
        return b.op(
            "Sub",
            inside,
            b.op("StopGradient", b.op("Sub", inside, b.op("Mul", x, b.constant(single(np.abs(GRID) < 1))))),
        )[0]

    await check(build, GRID, **SINGLE)
