"""Shapes of the ops that only tests have: Delay and Error give what they are given.

Flows in: the shape of the input. Flows out: the same. Always holds: of what InvalidRefType refers to nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, unchanged
from ...dtypes import Shape

shape_fn("Delay", "Error")(unchanged)


@shape_fn("InvalidRefType")
def unknown(_c: ShapeContext) -> Sequence[Shape]:
    """Any shape."""
    return (None,)
