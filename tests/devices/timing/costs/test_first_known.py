"""The first source that knows an op speaks, alone and in batches; nobody's op is an error that says what to do."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices.spec import DeviceSpec
from partita.devices.timing import OpCost, RooflineSource, simulate
from partita.devices.timing.costs.first_known import FirstKnown
from partita.devices.timing.costs.source import CostRequest, UnknownCost
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType, Dims
from partita.graph.ops.properties import NodeProperties, properties_of

from ..steps import StepBuilder, cluster, spec

NEG = properties_of("Neg", {"T": DataType.FLOAT})


class _Knows:
    """Knows the sizes that it is given, and says so by the operations."""

    def __init__(self, number: int, sizes: set[int]) -> None:
        self.number, self.sizes = number, sizes

    def cost(
        self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        if properties.op == "Placeholder":
            return OpCost(0, 0, 0, "free")
        if inputs[0][0] not in self.sizes:
            raise UnknownCost(f"no size {inputs[0][0]}")
        return OpCost(1, self.number, 0, "measured")


sets = st.sets(st.integers(1, 6))


@given(sets, sets, st.lists(st.integers(1, 6)))
def test_the_first_that_knows_speaks(first: set[int], second: set[int], sizes: list[int]) -> None:
    """And a batch has the answers of its questions one by one."""
    device = spec()
    source = FirstKnown(_Knows(1, first), _Knows(2, second), RooflineSource())
    batch = [CostRequest(NEG, ((size,),), ((size,),), device) for size in sizes]
    costs = source.costs(batch)
    assert costs == [source.cost(*request) for request in batch]
    spoke = [cost.flops if cost.provenance == "measured" else 3 for cost in costs]
    assert spoke == [1 if size in first else 2 if size in second else 3 for size in sizes]


def test_it_explains_by_the_source_that_spoke() -> None:
    """The roofline's text where the first source knows nothing; the time where the one that spoke has no text."""
    source, device = FirstKnown(_Knows(1, {2}), RooflineSource()), spec()
    text = source.explain(NEG, ((3,),), ((3,),), device).text()
    assert "roofline" in text
    assert "_Knows had no time of this op" in text
    spoke = source.explain(NEG, ((2,),), ((2,),), device)
    assert (spoke.cost, spoke.assumed) == (OpCost(1, 1, 0, "measured"), ())
    assert "_Knows gave the time; it explains no more" in spoke.text()
    with pytest.raises(InvalidArgumentError, match="no source"):
        FirstKnown()


def test_an_op_that_no_source_knows() -> None:
    """The error names the node, its shapes and device, and the remedy."""
    step = StepBuilder()
    step.op("a", "Neg", [step.feed("x", (3, 2))])
    with pytest.raises(UnknownCost, match=r"Neg \[\(3, 2\)\] -> \[\(3, 2\)\] on test .*RooflineSource\(\)\)") as error:
        simulate(step.parts(), cluster(), cost_source=FirstKnown(_Knows(1, set())))
    assert (error.value.node, error.value.op) == ("a", "Neg")
