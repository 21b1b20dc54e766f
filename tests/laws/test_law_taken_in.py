"""Law of functions taken in: loops of functions that run as one loop compute and fail as if each function was called.

Random nests of loops, conditionals and calls, some of which fail. The same functions are called from several places and
devices at once. Called and taken in they are alike to the letter of their errors; lowered, when nodes have other names,
in values and in what the failing kernel says.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import pytest
from hypothesis import given, settings

from partita.actors import open_session
from partita.actors.running import call_kernels
from partita.actors.running.lazy_callee import LazyCallee
from partita.actors.running.loops import taken_in
from partita.errors import PartitaError
from partita.graph.dtypes import Array
from partita.graph.protos import ConfigProto, GraphDef
from tests.actors.nest_programs import NestProgram, nest_program, nest_programs
from tests.runs import assert_same_values

SOFT = ConfigProto(allow_soft_placement=True)
INLINED = ConfigProto(allow_soft_placement=True)
INLINED.graph_options.optimizer_options.do_function_inlining = True


class Failure(NamedTuple):
    """An error as text, and what its kernel says."""

    text: str
    message: str


async def outcomes(
    program: NestProgram, graph_def: GraphDef, config: ConfigProto = SOFT, devices: str = "cpu:2"
) -> list[Array | Failure]:
    """What each fetch is, or how it fails, in two steps each."""
    values: list[Array | Failure] = []
    async with open_session(graph_def, devices, config=config) as session:
        await session.run([], targets=[program.init])
        for _ in range(2):
            for fetch in program.fetches:
                try:
                    values += await session.run(fetch, program.feeds)
                except PartitaError as error:
                    values.append(Failure(str(error), error.message))
        with suppress(PartitaError):  # of several that fail in one step any may be first
            values += await session.run(program.fetches, program.feeds)
    return values


async def called(program: NestProgram, graph_def: GraphDef, devices: str = "cpu:2") -> list[Array | Failure]:
    """The outcomes where no function is taken in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_kernels, "loop_of", lambda *_: None)
        return await outcomes(program, graph_def, devices=devices)


def on_gpus(graph_def: GraphDef) -> GraphDef:
    """The graph with GPUs, which have memory of their own, in place of its CPUs."""
    moved = GraphDef.FromString(graph_def.SerializeToString())
    for node in (*moved.node, *(node for function in moved.library.function for node in function.node_def)):
        node.device = node.device.replace("CPU", "GPU")
    return moved


def assert_alike(ours: list[Array | Failure], theirs: list[Array | Failure], *, to_the_letter: bool) -> None:
    """The same values and failures; texts of failures only `to_the_letter`."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, Failure) and isinstance(other, Failure):
            assert one.message == other.message
            assert not to_the_letter or one.text == other.text
        else:
            assert not isinstance(one, Failure), one
            assert not isinstance(other, Failure), other
            assert_same_values([one], [other])


@settings(max_examples=40)
@given(nest_programs())
async def test_taken_in_functions_compute_and_fail_as_called_and_lowered_ones(program: NestProgram) -> None:
    """Values bit for bit; errors with node, op, device, function and calls."""
    ours = await outcomes(program, program.called)
    assert_alike(ours, await called(program, program.called), to_the_letter=True)
    assert_alike(ours, await outcomes(program, program.called, INLINED), to_the_letter=False)
    assert_alike(ours, await outcomes(program, program.lowered), to_the_letter=False)


@settings(max_examples=20)
@given(nest_programs())
async def test_functions_on_devices_with_memory_of_their_own_compute_and_fail_alike(program: NestProgram) -> None:
    """Those that copy between the host and the device are called, others taken in."""
    moved = on_gpus(program.called)
    ours = await outcomes(program, moved, devices="gpu:2")
    assert_alike(ours, await called(program, moved, "gpu:2"), to_the_letter=True)


@settings(max_examples=40)
@given(nest_programs(is_random=True))
async def test_taken_in_functions_draw_the_random_numbers_of_called_ones(program: NestProgram) -> None:
    """Generators are those of the same nodes and calls, and go on from step to step."""
    assert_alike(await outcomes(program, program.called), await called(program, program.called), to_the_letter=True)


async def test_most_of_the_drawn_loops_are_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the law would say little."""
    found: list[bool] = []
    loop_of = taken_in.loop_of

    def counted(cond: LazyCallee, body: LazyCallee) -> object:
        loop = loop_of(cond, body)
        found.append(loop is not None)
        return loop

    monkeypatch.setattr(call_kernels, "loop_of", counted)
    for seed in range(20):
        program = nest_program(seed, 2, 2, has_variable=False, is_random=False)
        await outcomes(program, program.called)
    assert len(found) >= 20
    assert sum(found) > 0.9 * len(found)
