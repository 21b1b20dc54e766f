"""Shape functions of what debuggers put into a graph."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, unchanged, unknown
from ...dtypes import Shape

shape_fn("DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3")(unchanged)
shape_fn("DebugNumericSummary", "DebugNumericSummaryV2")(unknown)


@shape_fn("DebugNanCount")
def nan_count(c: ShapeContext) -> Sequence[Shape]:
    """A vector of one count."""
    return ((1,),)
