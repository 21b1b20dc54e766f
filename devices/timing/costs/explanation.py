"""What a source of costs says of one of its times: the formula, the numbers in it, and how sure it is.

print(explanation_of(source, request).text())

MatMul on A100-80GB: 5.300 us, fitted
  formula   (floor + the soft maximum of arithmetic, k-loop and bytes, with the fastest tile) * residual
  tile      128 x 128, k in 1 part, 1 wave
  terms     arithmetic 1204 ns
  ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from attrs import evolve, field, frozen

from ....graph.ops.properties import NodeProperties
from ...kernels.op_cost import PortDims
from ...spec import DeviceSpec
from ...units import format_ns
from .source import CostRequest, CostSource, OpCost, checked_cost, cost_of


class ExplainedNumber(NamedTuple):
    """A number of a formula: its text has the unit."""

    name: str
    value: str
    source: str = ""


@frozen
class Explanation:
    """Where the time of one op comes from.

    `inputs` are what the formula reads of the op, `numbers` what it reads of the device, `tile` the choice that a
    product made, `terms` the parts of the time. `rows` says what the numbers were fitted to. `null_model` is the name
    and the time of what a datasheet alone says. `assumed` are sentences. `node` and `device` are those of a step, if it
    is about one.
    """

    what: str
    cost: OpCost
    formula: str
    inputs: Mapping[str, str] = field(factory=dict)
    tile: str = ""
    numbers: tuple[ExplainedNumber, ...] = ()
    rows: str = ""
    null_model: tuple[str, int] | None = None
    assumed: tuple[str, ...] = ()
    terms: Mapping[str, str] = field(factory=dict)
    node: str = ""
    device: str = ""

    def text(self) -> str:
        """A line for the time, and one for each thing that is known of it."""
        cost, where = self.cost, f"{self.node}, {self.device}: " if self.node else ""
        numbers = [f"{name} {value}{f' ({source})' if source else ''}" for name, value, source in self.numbers]
        interval = null = ""
        if cost.low_ns is not None and cost.high_ns is not None and cost.provenance != "free":
            interval = f"{format_ns(cost.low_ns)} to {format_ns(cost.high_ns)} in four of five runs"
        if self.null_model is not None:
            null = f"{self.null_model[0]}: {format_ns(self.null_model[1])}"
        return "\n".join(
            [
                f"{where}{self.what}: {format_ns(cost.time_ns)}, {cost.provenance}",
                *_lines("formula", [self.formula]),
                *_lines("inputs", [f"{name} {value}" for name, value in self.inputs.items()]),
                *_lines("tile", [self.tile]),
                *_lines("terms", [f"{name} {value}" for name, value in self.terms.items()]),
                *_lines("numbers", numbers),
                *_lines("rows", [self.rows]),
                *_lines("interval", [interval]),
                *_lines("null", [null]),
                *_lines("assumed", self.assumed),
            ]
        )


def _lines(heading: str, texts: Sequence[str]) -> list[str]:
    """A line for each text that says something, the first with the heading."""
    said = [text for text in texts if text]
    return [f"  {'' if i else heading:<9} {text}" for i, text in enumerate(said)]


@runtime_checkable
class ExplainingSource(CostSource, Protocol):
    """A source that says where its times come from."""

    def explain(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> Explanation:
        """What `cost` says for the same question, with its reasons."""
        ...


def explanation_of(source: CostSource, request: CostRequest) -> Explanation:
    """What a source says of one of its times; time and provenance alone of a source that explains nothing."""
    if isinstance(source, ExplainingSource):
        told = source.explain(*request)
        return evolve(told, cost=checked_cost(source, request, told.cost))
    return Explanation(
        f"{request.properties.op} on {request.spec.name}",
        cost_of(source, request),
        f"{type(source).__name__} gave the time; it explains no more",
    )
