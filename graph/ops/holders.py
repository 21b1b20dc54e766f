"""Which inputs of a node become elements of a holder of tensors: a list, a stack, an array, a queue, a staging area.

QueueEnqueueV2(queue, a, b)                  a, b      the components of one element
TensorArrayWriteV3(array, index, a, flow)    a
SparseAccumulatorApplyGradient(handle, step, indices, values, shape)    indices, values, shape
"""

from __future__ import annotations

from .properties import NodeProperties
from .record import Holding

PUTTING = frozenset({Holding.PUTS, Holding.PUSHES, Holding.PUTS_COPIES, Holding.ADDS})
"""what ops do that put inputs into a holder"""


def written_inputs(properties: NodeProperties) -> range:
    """The ports of the inputs that a node puts into a holder."""
    record = properties.op_def.record
    if record.holding not in PUTTING:
        return range(0)
    first, args = record.written_input, properties.op_def.input_args
    is_list = args[first].type_list_attr or args[first].number_attr
    is_last = is_list or record.holding is Holding.ADDS
    return range(first, len(properties.input_types) if is_last else first + 1)
