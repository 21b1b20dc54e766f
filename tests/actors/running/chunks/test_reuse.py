"""A buffer is reused if and only if nothing else refers to it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.actors.plans.instructions import Instruction, Slots
from partita.actors.plans.plan import Plan, Segment
from partita.actors.running.chunks.learning import LearningLimits, is_observed, learn
from partita.actors.running.chunks.reuse import kept, reusing
from partita.devices.kernels.registry import Kernel
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array
from tests.strategies import cpu

BIG = 1 << 13
ADD: Kernel = operator.add
SLOW: dict[str, Any] = {"budget_s": 0, "thread_limit_s": 0}  # so that every chunk is seen to take long


def after(instruction: Instruction, slots: Slots) -> Slots:
    step, *_ = instruction
    step(slots)
    return slots


def big(value: float) -> Array:
    return np.full(BIG, value, np.float32)


def test_the_sole_reference_is_reused() -> None:
    slots: Slots = [None, big(1), big(2)]
    place = id(slots[1])
    after(reusing((ADD, 1, 2, 1), np.add), slots)
    assert id(slots[1]) == place
    np.testing.assert_array_equal(slots[1], big(3))


def test_what_others_see_stays_as_it_is() -> None:
    """Arrays with a second reference or a view, and read-only arrays, are not overwritten."""
    looks: list[Callable[[Array], Array]] = [lambda v: v, lambda v: v[:], lambda v: v.reshape(-1, 2)]
    for look in looks:
        value = big(1)
        seen = look(value)
        slots = after(reusing((ADD, 1, 2, 1), np.add), [None, value, big(2)])
        del value
        np.testing.assert_array_equal(seen, look(big(1)))
        np.testing.assert_array_equal(slots[1], big(3))
    fixed = big(1)
    fixed.flags.writeable = False
    slots = after(reusing((ADD, 1, 2, 1), np.add), [None, fixed, big(2)])
    np.testing.assert_array_equal(slots[1], big(3))


def test_a_result_of_another_shape_gets_its_own_buffer() -> None:
    slots: Slots = [None, big(1), big(2).reshape(-1, 1)[:2]]
    assert after(reusing((ADD, 1, 2, 1), np.add), slots)[1].shape == (2, BIG)


def test_an_instruction_that_kills_no_input_stays() -> None:
    plain: Instruction = (ADD, 1, 2, 3)
    assert reusing(plain, np.add) is plain


@given(
    picks=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=12),
    fetched=st.sets(st.integers(0, 12), min_size=1),
    devices=st.integers(1, 2),
)
@settings(max_examples=30)
async def test_steps_give_the_same_values_for_ever(
    picks: list[tuple[int, int, int]], fetched: set[int], devices: int
) -> None:
    """Later steps that reuse buffers change neither earlier fetches nor feeds, and give the same values."""
    builder = GraphBuilder()
    tensors = [builder.placeholder("x", "float32", device=cpu(0))]
    for number, (op, a, b) in enumerate(picks):
        inputs = [tensors[a % len(tensors)], tensors[b % len(tensors)]]
        name = ("Sub", "Maximum", "Relu", "Identity")[op]
        outputs = builder.op(name, *inputs[: 1 if op > 1 else 2], name=f"n{number}", device=cpu(number % devices))
        tensors.append(outputs[0])
    fetches = [f"n{index % len(picks)}:0" for index in sorted(fetched)]
    feed = np.linspace(-1, 1, BIG, dtype=np.float32)
    async with open_session(builder.graph_def(), devices=f"cpu:{devices}", **SLOW) as session:
        runs = [await session.run(fetches, {"x": feed}) for _ in range(4)]
    copies = [np.array(value) for value in runs[0]]
    for values in runs:
        for value, expected in zip(values, copies, strict=True):
            np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(feed, np.linspace(-1, 1, BIG, dtype=np.float32))


def test_what_has_reused_nothing_is_put_back() -> None:
    """After a trial small tensors have their plain instruction again, large ones go on reusing."""
    plain: list[Instruction] = [(ADD, i, 1 + i, 1 + i) for i in (1, 3)] + [(np.exp, 5, 0, 5), (np.exp, 6, 0, 6)]
    chunk = [reusing(instruction, np.exp if instruction[0] is np.exp else np.add) for instruction in plain]
    segment = Segment((chunk,), [0] * len(chunk))  # type: ignore[list-item]  # numbers of nodes
    segment.on_trial[id(chunk)] = 3
    tried = list(chunk)
    for run in range(3):
        assert chunk == tried, run
        assert is_observed(segment, id(chunk))
        slots: Slots = [None, np.float32(1), np.ones(2), big(1), big(2), big(0), np.ones(2, np.float32)]
        for instruction in chunk:
            after(instruction, slots)
        learn(Plan("/device:CPU:0", [], [], []), segment, (chunk,), 0, 0.0, LearningLimits(1, 1))
    assert chunk == [plain[0], tried[1], tried[2], plain[3]]
    assert [kept(instruction) for instruction in chunk] == chunk
    assert not is_observed(segment, id(chunk))
