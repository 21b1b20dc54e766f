"""The examples in the docstrings of the compiler are what is computed and printed."""

from __future__ import annotations

from textwrap import indent

import numpy as np

from partita.actors.plans import compiler
from partita.actors.plans.binding import Binder
from partita.actors.plans.columns import columns_of
from partita.actors.plans.draft import draft_of
from partita.actors.plans.printer import draft_text
from partita.actors.plans.roles import Role
from partita.actors.plans.transfers import shares_of
from partita.devices import cut
from partita.devices.state import DeviceState
from partita.graph.builder import GraphBuilder
from tests.strategies import cpu


def test_the_example_is_what_is_printed() -> None:
    """The partition of CPU:0, its draft and segments, and its plan, each as the docstring has it."""
    b = GraphBuilder()
    neg = b.op("Neg", b.placeholder("x", "float32", (), device=cpu(0)), name="neg", device=cpu(0))[0]
    same = b.op("Identity", neg, name="same", device=cpu(0))[0]
    added = b.op("Add", same, b.constant(np.float32(1), name="one"), name="sum", device=cpu(1))[0]
    b.op("Mul", added, same, name="y", device=cpu(0))
    parts = cut(b.graph_def(), "cpu:2", feeds=["x"], fetches=["y"])
    pairs = [(part, Binder(name, DeviceState(0))) for name, part in parts.items()]
    drafts = [draft_of(columns_of(part), binder) for part, binder in pairs]
    shares = shares_of(list(parts.values()), drafts, bundled=True)
    plans = compiler.compile_plans(pairs)
    for text in (str(parts[cpu(0)]), draft_text(drafts[0], shares[0]), str(plans[0])):
        short = text.replace("/job:localhost/replica:0/task:0/device:", "").replace(";0000000000000001;", ";1;")
        assert compiler.__doc__ is not None
        assert f"\n\n{indent(short, '    ')}\n\n" in compiler.__doc__


def test_the_columns_and_the_roles_of_a_small_graph() -> None:
    """Those that the docstrings of columns and draft have as their example, as has the one of slots."""
    b = GraphBuilder()
    neg = b.op("Neg", b.placeholder("x", "float32", ()), name="neg")[0]
    b.op("Add", neg, b.constant(np.float32(1), name="one"), name="y")
    (part,) = cut(b.graph_def(), "cpu:1", feeds=["x"], fetches=["y"]).values()
    columns = columns_of(part)
    assert columns.names == ["one", "_arg_x_0_0", "neg", "y", "_retval_y_0_0"]
    assert columns.first_value.tolist() == [1, 2, 3, 4, 5, 5]
    assert list(zip(columns.data.src, columns.data.dst, strict=True)) == [(1, 2), (2, 3), (0, 3), (3, 4)]
    assert (columns.data_value.tolist(), columns.inputs[3]) == ([2, 3, 1, 4], [3, 1])
    draft = draft_of(columns, Binder(cpu(0), DeviceState(0)))
    assert draft.roles == [Role.CONST, Role.ARG, Role.COMPUTE, Role.COMPUTE, Role.RETVAL]
    assert draft.emits.tolist() == [False, False, True, True, False]


def test_values_take_turns_in_a_slot() -> None:
    """As the docstring of slots has it."""
    b = GraphBuilder()
    a = b.op("Neg", b.placeholder("x", "float32", ()), name="a")[0]
    b.op("Neg", b.op("Exp", a, name="b")[0], name="c")
    ((device, part),) = cut(b.graph_def(), "cpu:1", feeds=["x"], fetches=["c"]).items()
    (plan,) = compiler.compile_plans([(part, Binder(device, DeviceState(0)))])
    assert "  s7 = Neg(s5)    # a\n  s7 = Exp(s7)    # b\n  s6 = Neg(s7)    # c\n" in str(plan)
