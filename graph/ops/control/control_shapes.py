"""Shape functions of ops that print, tell the time or end the step."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, no_outputs, scalar, shape_fn, unchanged, unknown, with_rank
from ...dtypes import Shape

shape_fn("Print")(unchanged)
shape_fn("Timestamp", "ToBool")(scalar)
shape_fn("Abort")(no_outputs)
shape_fn("BatchFunction")(unknown)


@shape_fn("PrintV2")
def print_text(c: ShapeContext) -> Sequence[Shape]:
    """No output; one string."""
    with_rank(c.inputs[0], 0)
    return ()
