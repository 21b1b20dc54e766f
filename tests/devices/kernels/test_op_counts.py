"""Counts of many uses of an op: those of each use alone."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.op_cost import CostContext, bytes_of, flops_of
from partita.devices.kernels.op_counts import OpShapes, counts_of
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import NodeProperties, properties_of

FLOAT, INT32 = DataType.FLOAT, DataType.INT32
OPS = [
    properties_of("Mul", {"T": FLOAT}),
    properties_of("ConcatV2", {"N": 2, "T": FLOAT, "Tidx": INT32}),
    properties_of("Sum", {"T": FLOAT, "Tidx": INT32}),
    properties_of("Cast", {"SrcT": FLOAT, "DstT": DataType.HALF}),
    properties_of("GatherV2", {"Tparams": FLOAT, "Tindices": INT32, "Taxis": INT32}),
    properties_of("MatMul", {"T": FLOAT}),
    properties_of("TensorListFromTensor", {"element_dtype": FLOAT, "shape_type": INT32}),
    properties_of("StringLower", {}),
]
dims = st.lists(st.integers(0, 2**20), max_size=4).map(tuple)


def alone(properties: NodeProperties, shapes: OpShapes) -> tuple[int, int] | None:
    """The counts of one use, None where the shapes do not fit the op."""
    types = properties.input_types, properties.output_types
    c = CostContext(properties.op, properties.attrs, *shapes, *types)
    try:
        return flops_of(c), bytes_of(c)
    except InvalidArgumentError:
        return None


@given(st.sampled_from(OPS), st.data())
def test_together_is_one_by_one(properties: NodeProperties, data: st.DataObject) -> None:
    """Whatever the shapes are, and for sizes that no machine word holds."""
    ports = [st.tuples(*[dims] * len(types)) for types in (properties.input_types, properties.output_types)]
    uses = data.draw(st.lists(st.builds(OpShapes, *ports), max_size=4))
    assert counts_of(properties, uses) == [alone(properties, shapes) for shapes in uses]


@pytest.mark.parametrize("properties", OPS, ids=lambda p: str(p.op))
def test_no_use_has_no_counts(properties: NodeProperties) -> None:
    """The columns may be empty."""
    assert counts_of(properties, []) == []
