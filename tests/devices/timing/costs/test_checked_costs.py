"""What a source of costs returns that can be no cost is one error that names source and op, wherever it is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any  # a source of a user may return anything

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import RooflineSource, cut, explain, simulate
from partita.devices.timing.costs.first_known import FirstKnown
from partita.devices.timing.costs.source import CostRequest, OpCost
from partita.errors import InvalidArgumentError
from partita.graph import GraphBuilder
from partita.graph.dtypes import Dims
from partita.graph.ops.properties import NodeProperties

WRONG: dict[str, Any] = {
    "negative": OpCost(-1, 0, 0, "measured"),
    "nan": OpCost(math.nan, 0, 0, "measured"),  # type: ignore[arg-type]  # what a user's source may return
    "infinite": OpCost(math.inf, 0, 0, "measured"),  # type: ignore[arg-type]  # as above
    "fraction": OpCost(1.5, 0, 0, "measured"),  # type: ignore[arg-type]  # as above
    "whole float": OpCost(2.0, 0, 0, "measured"),  # type: ignore[arg-type]  # as above
    "numpy float": OpCost(np.float64(3), 0, 0, "measured"),  # type: ignore[arg-type]  # as above
    "text": OpCost("1", 0, 0, "measured"),  # type: ignore[arg-type]  # as above
    "bool": OpCost(True, 0, 0, "measured"),
    "ages": OpCost(10**30, 0, 0, "measured"),
    "negative bytes": OpCost(1, 0, -4, "measured"),
    "fractional operations": OpCost(1, 0.5, 0, "measured"),  # type: ignore[arg-type]  # as above
    "negative bound": OpCost(1, 0, 0, "measured", -1, 2),
    "bounds that cross": OpCost(1, 0, 0, "measured", 3, 2),
    "a number": 7,
    "nothing": None,
}


@dataclass
class Bad:
    """Answers one op with what it was given."""

    answer: Any

    def cost(
        self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: Any
    ) -> OpCost:
        """That of the roofline, but for Tanh."""
        if properties.op == "Tanh":
            answer: OpCost = self.answer
            return answer
        return RooflineSource().cost(properties, inputs, outputs, spec)


class BadTogether(Bad):
    """The same of many ops together."""

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """One answer each."""
        return [self.cost(*request) for request in batch]


class Short(Bad):
    """Answers fewer ops than it is asked about."""

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """All but the last."""
        return [RooflineSource().cost(*request) for request in batch[:-1]]


def graph() -> GraphBuilder:
    """x -> Tanh."""
    b = GraphBuilder()
    b.op("Tanh", b.placeholder("x", "float32", (4,)), name="y")
    return b


@pytest.mark.parametrize("kind", [Bad, BadTogether])
@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("is_first", [False, True])
async def test_wrong_costs_are_one_error_everywhere(kind: type[Bad], case: str, is_first: bool) -> None:
    """In a simulation, in an explanation, on the virtual clock, and behind FirstKnown."""
    bad = kind(WRONG[case])
    source = FirstKnown(bad, RooflineSource()) if is_first else bad
    b, pattern = graph(), rf"cost of Tanh .* by {kind.__name__} cannot be: .*; return OpCost\(time_ns"
    parts = cut(b, "cpu:1", feeds="x", fetches="y")
    with pytest.raises(InvalidArgumentError, match=pattern):
        simulate(parts, "cpu:1", cost_source=source)
    with pytest.raises(InvalidArgumentError, match=pattern):
        explain(parts, "cpu:1", "y", cost_source=source)
    async with open_session(b, "cpu:1", clock="virtual", cost_source=source) as session:
        with pytest.raises(InvalidArgumentError, match=pattern):
            await session.run("y", {"x": [1.0, 2, 3, 4]})


def test_answers_that_are_missing_are_an_error() -> None:
    """A batch has an answer for each request."""
    parts = cut(graph(), "cpu:1", feeds="x", fetches="y")
    for source in (Short(None), FirstKnown(Short(None), RooflineSource())):
        with pytest.raises(InvalidArgumentError, match=r"Short answered \d of \d ops"):
            simulate(parts, "cpu:1", cost_source=source)


async def test_numbers_of_numpy_are_whole() -> None:
    """An integer of any kind counts, and becomes Python's."""
    source = Bad(OpCost(np.int64(70), np.int32(1), np.uint8(2), "measured"))  # type: ignore[arg-type]  # see WRONG
    parts = cut(graph(), "cpu:1", feeds="x", fetches="y")
    event = simulate(parts, "cpu:1", cost_source=source).find("y")
    assert (event.duration_ns, event.flops, event.bytes) == (70, 1, 2)
    assert type(explain(parts, "cpu:1", "y", cost_source=source)[0].cost.time_ns) is int
