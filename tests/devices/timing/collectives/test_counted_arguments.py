"""Functions whose collectives count on in an argument: planned once, and every call has collectives of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.devices import cut, local_cluster, simulate
from partita.devices.timing import Timeline
from partita.devices.timing.bodies.planning import Planner
from partita.errors import InvalidArgumentError
from partita.graph import GraphBuilder
from tests.function_defs import function_of

CLUSTER = local_cluster("gpu:2")


def step(numbers: tuple[tuple[Any, ...], tuple[Any, ...]], *, reads: bool = False) -> GraphBuilder:
    """Each GPU calls a function once for every number of its own; `reads` lets the function compute with it too."""
    b, inner = GraphBuilder(), GraphBuilder()
    value, number = inner.placeholder("value", "float32", (1000,)), inner.placeholder("number", "int32", ())
    total = inner.op("CollectiveReduceV2", value, 2, 3, number, [], merge_op=b"Add", final_op=b"Id", name="sum")[0]
    if reads:
        total = inner.op("Mul", total, inner.op("Cast", number, DstT=np.float32)[0])[0]
    b.function(function_of("exchange", inner.graph_def(), ["value:0", "number:0"], [total.name]))
    for rank, of_rank in enumerate(numbers):
        with b.device(f"/gpu:{rank}"):
            y = b.op("Fill", [1000], np.float32(rank))[0]
            for call, n in enumerate(of_rank):
                y = b.op("exchange", y, n, name=f"call{rank}_{call}")[0]
            b.op("Neg", y, name=f"end{rank}")
    return b


def played(b: GraphBuilder) -> Timeline:
    """The timeline of both ends."""
    return simulate(cut(b, CLUSTER, targets=["end0", "end1"]), CLUSTER)


def test_every_call_has_a_collective_of_its_own() -> None:
    """Three calls on each of two GPUs: three collectives one after the other, as if the calls were inlined."""
    b = step(((5, 6, 7), (5, 6, 7)))
    called = [event for event in played(b).events if event.kind == "collective"]
    inlined = simulate(cut(b, CLUSTER, targets=["end0", "end1"], inline=True), CLUSTER)
    times = [(e.start_ns, e.end_ns) for e in inlined.events if e.kind == "collective"]
    assert len(called) == 6
    assert sorted((event.start_ns, event.end_ns) for event in called) == sorted(times)


def test_numbers_that_differ_never_meet() -> None:
    """The instance of a call is told with the members that wait."""
    with pytest.raises(InvalidArgumentError, match=r"group 3, instance 5: 1 of 2 members never come; 'call0_0/sum'"):
        played(step(((5,), (6,))))


def test_the_body_is_planned_once_for_all_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless something else reads the number, three calls on each of two GPUs need two bodies and that of the step."""
    planned: list[Any] = []
    plan = Planner.plan

    def counted(self: Planner, *given: Any) -> Any:
        planned.append(given)
        return plan(self, *given)

    monkeypatch.setattr(Planner, "plan", counted)
    played(step(((5, 6, 7), (5, 6, 7))))
    assert len(planned) == 3
    planned.clear()
    played(step(((5, 6, 7), (5, 6, 7)), reads=True))
    assert len(planned) == 7


def test_a_number_that_no_constant_gives_is_refused() -> None:
    """The call is named."""
    fed = GraphBuilder()
    with fed.device("/gpu:0"):
        number = fed.placeholder("n", "int32", ())
    graph_def = step(((5,), (5,))).graph_def()
    next(node for node in graph_def.node if node.name == "call0_0").input[1] = number.node
    graph_def.node.extend(fed.graph_def().node)
    partitions = cut(graph_def, CLUSTER, feeds=["n"], targets=["end0", "end1"])
    with pytest.raises(InvalidArgumentError, match=r"has to know argument 1 before the run.*call0_0"):
        simulate(partitions, CLUSTER, feeds={"n": ()})
