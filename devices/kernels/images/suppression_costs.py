"""Operations of the choice among overlapping boxes: each chosen box is compared with all others."""

from __future__ import annotations

from ..op_cost import CostContext, flops

_OPERATIONS_OF_AN_OVERLAP = 14
"""four corners of the shared box, its sides, three areas, and the quotient"""


@flops(
    "NonMaxSuppression",
    "NonMaxSuppressionV2",
    "NonMaxSuppressionV3",
    "NonMaxSuppressionV4",
    "NonMaxSuppressionV5",
)
def overlaps_with_the_chosen(c: CostContext) -> int:
    return _OPERATIONS_OF_AN_OVERLAP * c.elements_in(1) * c.elements_out()


@flops("NonMaxSuppressionWithOverlaps")
def comparisons_with_the_chosen(c: CostContext) -> int:
    return c.elements_in(1) * c.elements_out()


@flops("CombinedNonMaxSuppression")
def overlaps_in_each_class(c: CostContext) -> int:
    """As if the chosen boxes were spread over the classes evenly."""
    images, boxes, _ = c.inputs[1]
    return _OPERATIONS_OF_AN_OVERLAP * boxes * c.elements_out(1) if images else 0
