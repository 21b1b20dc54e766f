"""Shapes of the special functions: unchanged for one variable, broadcast for several.

Flows in: the shapes of the variables. Flows out: the shape they broadcast to.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, broadcast_binary, merge, shape_fn, unchanged
from ...dtypes import Shape

shape_fn(
    *("Erf", "Erfc", "Erfinv", "Lgamma", "Digamma", "Ndtri", "Dawsn", "Expint", "Spence", "FresnelSin", "FresnelCos"),
    *("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselY0", "BesselY1"),
    *("BesselK0", "BesselK0e", "BesselK1", "BesselK1e"),
)(unchanged)

shape_fn("Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad", "Polygamma", "Zeta")(broadcast_binary)


@shape_fn("Betainc")
def betainc(c: ShapeContext) -> Sequence[Shape]:
    """The one shape of the inputs that are no scalars."""
    result: Shape = ()
    for shape in c.inputs:
        if shape == ():
            continue
        result = shape if result == () else merge(result, shape)
    return (result,)
