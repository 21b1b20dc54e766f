"""Kinds of nodes whose shape function alone decides what is known of their outputs: they are most nodes.

Mul of float       plain: shapes in, shapes out
Mul of int32       not: small values are followed, since shapes are computed from them
StackV2, Merge     not: more is known than shapes, or it depends on more than the inputs
"""

from __future__ import annotations

from ..analysis.shape_functions import ShapeFunction, lookup
from ..analysis.value_rules import follows_values
from ..dtypes import DataType, base_type, is_ref
from ..ops.properties import NodeProperties
from ..ops.record import CONTROL_FLOW, State

_HANDLES = (DataType.RESOURCE, DataType.VARIANT)


def plain_function(properties: NodeProperties) -> ShapeFunction | None:
    """The shape function that decides alone; None where anything else may. Nodes that call functions are not asked."""
    record = properties.op_def.record
    types = (*properties.input_types, *properties.output_types)
    if record.handle_shape_attr or record.state is State.TABLE or record.reads_handle is not None:
        return None
    if record.node_class in CONTROL_FLOW or any(is_ref(dtype) or base_type(dtype) in _HANDLES for dtype in types):
        return None
    return None if follows_values(properties) else lookup(properties.op)
