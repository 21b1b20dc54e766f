"""Memory of bodies that run several times, with times and hand-overs written by hand; a unit is 400 bytes."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices.timing.memory.buffers import Buffers, buffers_of
from partita.devices.timing.memory.kinds import address_spaces
from partita.devices.timing.memory.peaks import Lives, Peak, peaks_of
from partita.devices.timing.memory.runs import PassedOn, Run, tensors_of_runs
from partita.devices.timing.memory.tensors import Tensors, tensors_of
from partita.devices.timing.memory.times import Times
from partita.graph import DataType
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.shape_inference.infer import infer_joined

from ..steps import StepBuilder, cluster, cpu

UNIT = 400


def body() -> tuple[Tensors, list[str]]:
    """argument -> square -> sum with a constant -> result, and the names of the nodes."""
    step = StepBuilder()
    step.const("constant", [[1.0] * 10] * 10)
    step.feed("argument", (10, 10))
    step.op("square", "MatMul", ["argument", "argument"])
    step.op("sum", "Add", ["constant", "square"])
    step.op("result", "_Retval", ["sum"], index=0)
    return planned(step)


def planned(step: StepBuilder) -> tuple[Tensors, list[str]]:
    """The tensors of a graph on one CPU, and the names of its nodes."""
    graph = JoinedGraph({cpu(0): step.graph})
    nowhere = np.zeros(len(graph), np.int64)
    return tensors_of(infer_joined(graph), cluster(1).devices, nowhere, nowhere != 0), graph.names


def peak_of(tensors: Tensors, spans: list[tuple[int, int]]) -> Peak:
    """The peak of the CPU, for rows that run from and to these instants."""
    start_ns, end_ns = np.array(spans, np.int64).T
    times = Times(start_ns, end_ns, np.arange(len(spans)))
    buffers = buffers_of(tensors, times, np.array(address_spaces(cluster(1).devices)))
    return peaks_of(lives(tensors, buffers))[0]


def lives(tensors: Tensors, buffers: Buffers) -> Lives:
    """The buffers of their own."""
    own = buffers.buffer == np.arange(len(buffers.buffer))
    return Lives(tensors.memory[own], buffers.start_ns[own], buffers.end_ns[own], buffers.size_bytes[own])


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_an_iteration_leaves_what_the_next_one_takes_over(iterations: int) -> None:
    """The constant, the argument and its square, into which the sum is written: 3, for any number of iterations."""
    tensors, names = body()
    argument, result, rows = names.index("argument"), names.index("sum"), len(names)
    times = {"constant": (0, 0), "argument": (0, 0), "square": (0, 10), "sum": (10, 20), "result": (20, 20)}
    runs = [Run(tensors, k * rows, caller=-1) for k in range(iterations)]
    taken_over = [PassedOn(k * rows + argument, 0, (k - 1) * rows + result, 0) for k in range(1, iterations)]
    spans = [(20 * k + times[name][0], 20 * k + times[name][1]) for k in range(iterations) for name in names]
    assert peak_of(tensors_of_runs(runs, taken_over), spans) == (3 * UNIT, 0)


def test_a_call_has_the_buffers_of_its_body() -> None:
    """x is the argument, what the body returns is y, into which z is written: x, the constant and y: 3."""
    step = StepBuilder()
    step.feed("x", (10, 10))
    step.op("y", "MatMul", ["x", "x"])  # stands for a call
    step.op("z", "Neg", ["y"])
    caller, outside = planned(step)
    tensors, inside = body()
    x, y, base = outside.index("x"), outside.index("y"), len(outside)
    passed_on = [
        PassedOn(base + inside.index("argument"), 0, x, 0),
        PassedOn(y, 0, base + inside.index("sum"), 0),
    ]
    times = {"x": (0, 0), "y": (0, 20), "z": (20, 30), "constant": (0, 0), "argument": (0, 0), "square": (0, 10)}
    times |= {"sum": (10, 20), "result": (20, 20)}
    joined = tensors_of_runs([Run(caller, 0), Run(tensors, base, caller=y)], passed_on)
    assert peak_of(joined, [times[name] for name in (*outside, *inside)]) == (3 * UNIT, 0)


def test_variables_of_one_name_are_one_in_all_bodies() -> None:
    """A body that reads v runs twice, beside another one that reads v: 1, and the square of each: 2."""
    step = StepBuilder()
    step._add("v", "VarHandleOp", {"dtype": DataType.FLOAT, "shape": (10, 10)}, [], 0)
    step._add("read", "ReadVariableOp", {"dtype": DataType.FLOAT}, ["v"], 0)
    step.op("square", "MatMul", ["read", "read"])
    (first, names), (second, _) = planned(step), planned(step)
    runs = [Run(first, 0), Run(first, 3), Run(second, 6)]
    times = {"v": (0, 0), "read": (0, 0), "square": (0, 10)}
    spans = [(10 * k + times[name][0], 10 * k + times[name][1]) for k in range(3) for name in names]
    assert peak_of(tensors_of_runs(runs), spans) == (2 * UNIT, 0)
