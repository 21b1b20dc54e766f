"""The question that a source of op times answers: from properties, shapes and a device to a time in whole nanoseconds.

    MatMul, (64, 128), (128, 256) -> (64, 256), H100-SXM   ->   OpCost(2760 ns, 4194304, 131072, "fitted", 2480, 3090)

A source only needs a method `cost`; equal questions must have equal answers. One that answers many questions faster
together than one by one has a method `costs` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from numbers import Integral
from operator import le
from typing import Literal, NamedTuple, Protocol, cast

from ....errors import InvalidArgumentError, NotFoundError
from ....graph.dtypes import DataType, item_size
from ....graph.ops.properties import NodeProperties
from ....graph.ops.type_inference import PortTypes
from ...kernels.op_cost import CostContext, PortDims, computed_in, is_matrix
from ...kernels.op_counts import OpShapes
from ...spec import DeviceSpec

Provenance = Literal["measured", "fitted", "transferred", "roofline", "grappler", "assumed", "guessed", "free"]
"""where a time comes from; "transferred" is a fit for another element type or device, scaled; "assumed" rests on
constants that nobody measured on that device, "guessed" on nothing: no cost is stated, or shapes do not fit the op"""


MOST_TIME_NS = 2**63 - 1
"""292 years: the clock counts in 64 bits"""


class UnknownCost(NotFoundError):
    """A source knows nothing of an op with those shapes on that model of device."""


class OpCost(NamedTuple):
    """Time of one run of an op on its device, its operations and bytes, and the source of the time.

    `time_ns` has the floor of the kernel in it, and on a CPU the overhead of an op; on a GPU not the launch, which the
    host thread does while the GPU computes. Four of five runs take from `low_ns` to `high_ns`; both are None if the
    source does not say how sure it is.
    """

    time_ns: int
    flops: int
    bytes: int
    provenance: Provenance
    low_ns: int | None = None
    high_ns: int | None = None


FREE = OpCost(0, 0, 0, "free", 0, 0)
"""the cost of what takes no time"""


class CostRequest(NamedTuple):
    """One question: the arguments of `CostSource.cost`."""

    properties: NodeProperties
    inputs: PortDims
    outputs: PortDims
    spec: DeviceSpec


class CostSource(Protocol):
    """Returns how long an op takes on a device."""

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The cost of one run; all sizes in the shapes are known. UnknownCost if the source does not know it."""
        ...


class BatchCostSource(CostSource, Protocol):
    """A source that answers many questions together."""

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The cost of each request; equal to what `cost` returns."""
        ...


def checked_cost(source: CostSource, request: CostRequest, cost: OpCost) -> OpCost:
    """The cost, with Python's integers; InvalidArgumentError where time would run backwards, or in no whole ns."""
    if not isinstance(cost, OpCost):
        raise _wrong(source, request, f"it is {cost!r}")
    if all(type(value) is int and 0 <= value <= MOST_TIME_NS for value in _numbers_of(cost)) and _in_order(cost):
        return cost
    time_ns, flops, size = (_whole(source, request, cost, name) for name in ("time_ns", "flops", "bytes"))
    low_ns, high_ns = (
        None if getattr(cost, name) is None else _whole(source, request, cost, name) for name in ("low_ns", "high_ns")
    )
    if not _in_order(cost):
        raise _wrong(source, request, f"low_ns = {cost.low_ns} is above high_ns = {cost.high_ns}")
    return OpCost(time_ns, flops, size, cost.provenance, low_ns, high_ns)


def _numbers_of(cost: OpCost) -> tuple[int | None, ...]:
    return (cost.time_ns, cost.flops, cost.bytes, cost.low_ns, cost.high_ns)


def _in_order(cost: OpCost) -> bool:
    return cost.low_ns is None or cost.high_ns is None or cost.low_ns <= cost.high_ns


def _whole(source: CostSource, request: CostRequest, cost: OpCost, name: str) -> int:
    given = getattr(cost, name)
    if not isinstance(given, Integral) or isinstance(given, bool):
        raise _wrong(source, request, f"{name} = {given!r} is no whole number")
    value = int(given)
    if value < 0:
        raise _wrong(source, request, f"{name} = {value} is negative")
    if name.endswith("_ns") and value > MOST_TIME_NS:
        raise _wrong(source, request, f"{name} = {value} is above 292 years")
    return value


def _wrong(source: CostSource, request: CostRequest, why: str) -> InvalidArgumentError:
    shapes = f"{list(request.inputs)} -> {list(request.outputs)}"
    return InvalidArgumentError(
        f"the cost of {request.properties.op} {shapes} on {request.spec.name} by {type(source).__name__} cannot be: "
        f"{why}; return OpCost(time_ns, flops, bytes, provenance) with whole numbers from 0 on, or raise UnknownCost",
        op=request.properties.op,
    )


def cost_of(source: CostSource, request: CostRequest) -> OpCost:
    """The answer of a source; InvalidArgumentError for one that can be no cost."""
    return checked_cost(source, request, source.cost(*request))


def costs_of(source: CostSource, batch: Sequence[CostRequest]) -> list[OpCost]:
    """The cost of each request, asked for together where the source can; checked as by `cost_of`."""
    if not _answers_together(type(source)):
        return [cost_of(source, request) for request in batch]
    costs = cast(BatchCostSource, source).costs(batch)
    if len(costs) != len(batch):
        raise InvalidArgumentError(
            f"{type(source).__name__} answered {len(costs)} of {len(batch)} ops asked for together; `costs` must "
            "return one OpCost for each request, in their order"
        )
    if _are_whole(costs):
        return costs
    return [checked_cost(source, request, cost) for request, cost in zip(batch, costs, strict=True)]


@cache
def _answers_together(kind: type) -> bool:
    """Whether sources of a class answer many questions together.

    One that has `costs` from a class whose `cost` it replaces does not: it answers single questions in another way.
    """
    answers = (vars(each) for each in kind.__mro__ if "cost" in vars(each) or "costs" in vars(each))
    return "costs" in next(answers, ())


def _are_whole(costs: Sequence[OpCost]) -> bool:
    """Whether `checked_cost` has nothing to say about any of them: that all numbers are whole is seen at once."""
    if not {OpCost}.issuperset(map(type, costs)):
        return False
    *counts, _, low_ns, high_ns = zip(*costs, strict=True) if costs else ((0,),) * 6
    columns = (*counts, low_ns, high_ns)
    return all(
        {int}.issuperset(map(type, column)) and min(column) >= 0 and max(column) <= MOST_TIME_NS for column in columns
    ) and all(map(le, low_ns, high_ns))


def unknown_cost(source: CostSource, batch: Sequence[CostRequest], nodes: Sequence[str]) -> UnknownCost:
    """The error for the first of a batch that the source does not know; `nodes` are the names, request by request."""
    for request, node in zip(batch, nodes, strict=True):
        try:
            source.cost(*request)
        except UnknownCost as error:
            shapes = f"{list(request.inputs)} -> {list(request.outputs)}"
            return UnknownCost(
                f"{type(source).__name__} knows no time of {request.properties.op} {shapes} on {request.spec.name} "
                f"({error.message}); wrap it in FirstKnown(source, RooflineSource())",
                node=node,
                op=request.properties.op,
            )
    return UnknownCost(
        f"{type(source).__name__} knows no time of one of {len(batch)} ops asked for together, though it answers for "
        "each alone; `costs` must return what `cost` does"
    )


def context(properties: NodeProperties, inputs: PortDims, outputs: PortDims) -> CostContext:
    """The cost context of a node with those shapes."""
    return CostContext(
        properties.op, properties.attrs, inputs, outputs, properties.input_types, properties.output_types
    )


def rate_type(c: CostContext) -> DataType:
    """The element type whose rate an op runs at: that of its largest input, or of its output if it has none.

    An op that rounds its factors to another type says to which (`op_cost.computes_in`).
    """
    types = _rate_types(c.op, c.input_types, c.output_types)
    if len(types) == 1:
        return types[0]
    sized = [i for i, dtype in enumerate(c.input_types) if item_size(dtype)]
    return c.input_types[max(sized, key=lambda i: (c.bytes_in(i), -i))]


def _rate_types(op: str, input_types: PortTypes, output_types: PortTypes) -> list[DataType]:
    """What `rate_type` may be, at least one type, as shapes decide."""
    rounded = computed_in(op)
    if rounded is not None:
        return [rounded]
    sized = dict.fromkeys(dtype for dtype in input_types if item_size(dtype))
    return list(sized) or [*output_types[:1]] or [DataType.FLOAT]


def rates_of(properties: NodeProperties, uses: Sequence[OpShapes], spec: DeviceSpec) -> list[int]:
    """By use of one op the operations/s that it reaches on a device."""
    op, matrix = properties.op, is_matrix(properties.op)
    types = _rate_types(op, properties.input_types, properties.output_types)
    rates = {dtype: spec.achieved_flops_per_s(dtype, matrix=matrix) for dtype in types}
    if len(set(rates.values())) == 1:
        return [rates[types[0]]] * len(uses)
    return [rates[rate_type(context(properties, *shapes))] for shapes in uses]
