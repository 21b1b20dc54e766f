"""Shape functions of ops that only tests use: Delay and Error pass their input on; InvalidRefType gives any shape."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, unchanged
from ...dtypes import Shape

shape_fn("Delay", "Error")(unchanged)


@shape_fn("InvalidRefType")
def unknown(_c: ShapeContext) -> Sequence[Shape]:
    return (None,)
