"""All rules, by op; an op that is in none of the tables moves its inputs and outputs once and computes nothing."""

from __future__ import annotations

from ....kernels.op_cost import CostContext
from . import convolutions, elementwise, picks, pools, products
from .count import CountRule, GrapplerCount, each, nothing

_FREE = (
    "Const Enter Exit GuaranteeConst Identity IdentityN Merge NextIteration NoOp Placeholder PreventGradient Rank "
    "ReadVariableOp RefIdentity Reshape Shape ShapeN Size StopGradient Switch VarHandleOp Variable VariableV2 _Recv "
    "_Send"
)

_ADDED_BY_PARTITIONS = ("_Arg", "_Retval", "_HostRecv", "_HostSend")
"""stand for the placeholders, fetches and pairs of a whole graph, which have no cost"""

_OF_UNKNOWN_SHAPE = "InfeedEnqueue InfeedEnqueueTuple OutfeedEnqueue OutfeedEnqueueTuple QueueEnqueue QueueEnqueueV2"


def _as_scalars(c: CostContext) -> GrapplerCount:
    """Ops without shape inference: TensorFlow knows no shape of theirs and counts an element for each tensor."""
    return GrapplerCount(0, sum(c.bytes_in(i) // max(1, c.elements_in(i)) for i in range(len(c.inputs))))


RULES: dict[str, CountRule] = {
    **elementwise.RULES,
    **products.RULES,
    **convolutions.RULES,
    **pools.RULES,
    **picks.RULES,
    **each(nothing, (*_FREE.split(), *_ADDED_BY_PARTITIONS)),
    **each(_as_scalars, _OF_UNKNOWN_SHAPE.split()),
}
