"""Arithmetic on small integer constants is done when a plan is compiled, and kernels have constant inputs built in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.plans.compiler import compile_plans
from partita.actors.plans.instructions import slots_read
from partita.actors.plans.plan import Plan
from partita.actors.plans.printer import instructions_of
from partita.devices import cut
from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array

SIZES = st.lists(st.integers(0, 3), min_size=2, max_size=2)


def gradient_of_concat() -> GraphBuilder:
    """What `tf.gradients` makes of a concatenation along axis -1: the second part of the gradient dy."""
    b = GraphBuilder()
    shapes = [b.constant(np.array(shape, np.int32)) for shape in ((2, 3), (2, 1))]
    axis = b.op("FloorMod", b.constant(np.int32(-1)), b.constant(np.int32(2)), name="axis")[0]
    _, second = b.op("ConcatOffset", axis, shapes, name="offsets")
    b.op("Slice", b.placeholder("dy", "float32", (2, 4)), second, shapes[1], name="part")
    return b


def plan(b: GraphBuilder, *, every_node: bool = False) -> Plan:
    ((device, part),) = cut(b.graph_def(), "cpu:1", feeds=["dy"], fetches=["part"]).items()
    (compiled,) = compile_plans([(part, Binder(device, DeviceState(0)))], every_node=every_node)
    return compiled


def ops_of(compiled: Plan) -> list[str]:
    return [compiled.properties[n].op for s in compiled.segments for n, _ in instructions_of(s)]


def test_arithmetic_on_constants_needs_no_instruction_and_its_consumer_reads_none_of_them() -> None:
    compiled = plan(gradient_of_concat())
    assert ops_of(compiled) == ["Slice"]
    (argument,) = compiled.arguments
    ((_, instruction),) = instructions_of(compiled.segments[0])
    assert slots_read(instruction) == (argument.slot,)


def test_a_traced_plan_computes_every_node() -> None:
    assert {"FloorMod", "ConcatOffset", "Slice"} <= set(ops_of(plan(gradient_of_concat(), every_node=True)))


async def test_the_values_are_those_of_the_step() -> None:
    dy = np.arange(8, dtype=np.float32).reshape(2, 4)
    async with open_session(gradient_of_concat().graph_def()) as session:
        part, axis, offset = await session.run(["part", "axis", "offsets:1"], {"dy": dy})
    assert part.tolist() == [[3], [7]]
    assert axis.dtype == offset.dtype == np.int32
    assert (axis.tolist(), offset.tolist()) == (1, [0, 3])


async def test_a_node_that_raises_does_so_in_the_step() -> None:
    """A division by zero, and slices that leave their tensor, of constants and of a fed tensor."""
    b = GraphBuilder()
    zero, two = b.constant(np.int32(0)), b.constant(np.array([2], np.int32))
    b.op("FloorDiv", b.constant(np.int32(1)), zero, name="divided")
    b.op("Slice", b.constant(np.array([1, 2, 3], np.int32)), two, two, name="cut")
    b.op("Slice", b.placeholder("x", "float32", (None,)), two, two, name="cut_x")
    x = np.zeros(3, np.float32)
    async with open_session(b.graph_def()) as session:
        for name in ("divided", "cut", "cut_x"):
            with pytest.raises(InvalidArgumentError) as caught:
                await session.run(name, {"x": x} if name == "cut_x" else {})
            assert caught.value.node == name


@given(st.data(), SIZES, SIZES)
async def test_constant_inputs_are_as_good_as_fed_ones(data: st.DataObject, begin: list[int], size: list[int]) -> None:
    """Of tensors of changing shapes, in one session: the same values, or the same errors."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, None))
    for kind in ("known", "fed"):
        where = [
            b.constant(np.array(v, np.int32)) if kind == "known" else b.placeholder(name, "int32", (2,))
            for name, v in (("begin", begin), ("size", size))
        ]
        b.op("Slice", x, *where, name=f"{kind}_slice")
        b.op("Reshape", x, where[1], name=f"{kind}_reshape")
        b.op("Tile", x, where[1], name=f"{kind}_tile")
    fed = {"begin": np.array(begin, np.int32), "size": np.array(size, np.int32)}
    shapes = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3))
    async with open_session(b.graph_def()) as session:

        async def outcome(name: str, x: Array, feeds: dict[str, Array]) -> object:
            try:
                (value,) = await session.run([name], {"x": x, **feeds})
            except InvalidArgumentError as error:
                return error.message
            return value.shape, value.tolist()

        for shape in shapes:
            x_value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            for op, reads in (("slice", ("begin", "size")), ("reshape", ("size",)), ("tile", ("size",))):
                known = await outcome(f"known_{op}", x_value, {})
                assert known == await outcome(f"fed_{op}", x_value, {name: fed[name] for name in reads})
