"""Law: calls, conditionals and counted loops take the time of the same graph written out by hand."""

from __future__ import annotations

from hypothesis import given

from partita.devices import cut
from partita.devices.timing import Timeline, simulate
from tests.devices.timing.programs import Op, Program, Sequence, Writer, programs
from tests.devices.timing.steps import cluster


def timeline(program: Program, *, by_hand: bool) -> Timeline:
    """The step of a program on one CPU."""
    hardware = cluster(1, overhead_ns=3)
    return simulate(cut(Writer(by_hand).graph_def(program), hardware, feeds=["x"], fetches=["y"]), hardware)


def sums(timeline: Timeline) -> tuple[int, int, int]:
    """Operations, bytes of ops, and time."""
    return timeline.flops, sum(event.bytes * event.runs for event in timeline.events), timeline.makespan_ns


@given(programs())
def test_a_program_takes_the_time_of_its_ops_written_out(program: Program) -> None:
    """Operations, bytes and makespan are equal, with functions called or inlined."""
    program = Sequence((Op("Neg"), program))  # so that something takes time
    expected = sums(timeline(program, by_hand=True))
    assert sums(timeline(program, by_hand=False)) == expected
