"""A generator's state is a variable that every draw moves on, and the numbers are the ones TensorFlow draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors.sessions.local_session import open_session
from partita.devices.state import VARIABLE_TYPE, DeviceState, ResourceHandle, Variable, handle_array
from partita.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType, from_numpy
from tests.devices.kernels.harness import check_shapes, run, shapes

HANDLE = handle_array(ResourceHandle("", "localhost", "state", VARIABLE_TYPE))
PHILOX, THREE = np.int64(1), np.array([3])
WORD = st.integers(-(2**63), 2**63 - 1)
# TensorFlow 2.21 gives, from the state [-2, 3, 5] on, in two runs of one session.
TENSORFLOW: dict[tuple[str, DataType], Sequence[Sequence[float]]] = {
    ("StatefulUniform", DataType.FLOAT): [
        [0.1740802526473999, 0.5666613578796387, 0.3468818664550781],
        [0.36078357696533203, 0.9490978717803955, 0.7783699035644531],
    ],
    ("StatefulStandardNormalV2", DataType.FLOAT): [
        [-0.7604947686195374, -1.708252191543579, -1.4548299312591553],
        [-0.44894173741340637, 1.3555092811584473, 0.7040399312973022],
    ],
    ("StatefulTruncatedNormal", DataType.DOUBLE): [
        [-1.3504638340889517, 0.21437715006952685, 0.19250612627096586],
        [0.4862560003704047, 0.07089022133047271, -0.7437388999606117],
    ],
    ("StatefulUniformFullInt", DataType.INT32): [
        [680937539, -926381988, 162293408],
        [1689136680, 142179338, -1713135200],
    ],
}


def with_state(state: Sequence[int] | Array) -> tuple[DeviceState, Variable]:
    """A device whose variable behind `HANDLE` has that value."""
    value = np.asarray(state)
    device, variable = DeviceState(0), Variable("state", from_numpy(value), value)
    device.resource(HANDLE.item().key, lambda: variable)
    return device, variable


@pytest.mark.parametrize(("op", "dtype"), TENSORFLOW)
def test_numbers_are_tensorflows_run_after_run(op: str, dtype: DataType) -> None:
    """The counter moves on by 256 blocks per number, with a carry."""
    state, variable = with_state([-2, 3, 5])
    for run_number, expected in enumerate(TENSORFLOW[op, dtype]):
        drawn = run(op, HANDLE, PHILOX, THREE, dtype=dtype, state=state)
        np.testing.assert_allclose(drawn, np.array(expected, drawn.dtype), rtol=1e-6)
        np.testing.assert_array_equal(variable.read(), [766 + 768 * run_number, 4, 5])


def test_integers_of_a_range_are_tensorflows() -> None:
    """Algorithm 3 ("auto") is Philox."""
    state, _ = with_state([-2, 3, 5])
    for expected in ([-3, -10, 5], [-2, 2, 1]):
        drawn = run("StatefulUniformInt", HANDLE, np.int64(3), THREE, np.int64(-10), np.int64(10), state=state)
        np.testing.assert_array_equal(drawn, expected)


@given(st.lists(WORD, min_size=3, max_size=3), st.integers(0, 5))
def test_skipping_is_drawing_without_the_numbers(words: list[int], count: int) -> None:
    """All ways to move on by `count` numbers lead to one state; RngReadAndSkip gives the one before."""
    ends = []
    for move in ("draw", "skip", "read"):
        state, variable = with_state(words)
        if move == "draw":
            run("StatefulUniform", HANDLE, PHILOX, np.array([count]), dtype=DataType.FLOAT, state=state)
        elif move == "skip":
            assert run("RngSkip", HANDLE, PHILOX, np.int64(count), state=state) is None
        else:
            old = run("RngReadAndSkip", HANDLE, np.int32(1), np.uint64(count), state=state)
            np.testing.assert_array_equal(old, words)
        ends.append(variable.read().tolist())
    assert ends[0] == ends[1] == ends[2]


@given(st.lists(WORD, min_size=3, max_size=3))
def test_a_generator_draws_what_its_key_and_counter_draw(words: list[int]) -> None:
    """The state is the counter and the key of the stateless ops."""
    state, _ = with_state(words)
    drawn = run("StatefulUniform", HANDLE, PHILOX, THREE, dtype=DataType.FLOAT, state=state)
    bits = np.array(words).view(np.uint64)
    stateless = run("StatelessRandomUniformV2", THREE, bits[2:], bits[:2], np.int32(1), dtype=DataType.FLOAT)
    np.testing.assert_array_equal(drawn, stateless)


def test_the_first_version_reads_the_algorithm_from_the_state() -> None:
    """TensorFlow 2.21 gives these, for a graph of version 28, from the state [1, 2, 3, 4] on."""
    state, variable = with_state([1, 2, 3, 4])
    for expected in ([1.2501179, 0.35540006, -0.8838175], [1.2603234, 0.46608526, 0.01170056]):
        drawn = run("StatefulStandardNormal", HANDLE, THREE, dtype=DataType.FLOAT, state=state)
        np.testing.assert_allclose(drawn, np.array(expected, np.float32), rtol=1e-6)
    np.testing.assert_array_equal(variable.read(), [1, 1538, 3, 4])


def test_a_negative_skip_loses_a_carry() -> None:
    """As in TensorFlow, whose counter is added to word by word."""
    state, variable = with_state([-1, -1, 5])
    run("RngSkip", HANDLE, PHILOX, np.int64(-1), state=state)
    np.testing.assert_array_equal(variable.read(), [-257, -1, 5])


@pytest.mark.parametrize(
    ("state", "algorithm", "error", "message"),
    [
        ([1, 2, 3], 2, UnimplementedError, "Non-XLA devices don't support the ThreeFry algorithm."),
        ([1, 2, 3], 7, InvalidArgumentError, "Unsupported algorithm id: 7"),
        ([1, 2], 1, InvalidArgumentError, "For the Philox algorithm, the size of state must be at least 3; got 2"),
        ([[1, 2, 3]], 1, InvalidArgumentError, "RNG state must have one and only one dimension, not 2"),
    ],
)
def test_states_and_algorithms_are_checked(state: Any, algorithm: int, error: type[Exception], message: str) -> None:
    """The messages are TensorFlow's, and a refused draw leaves the state as it was."""
    device, variable = with_state(state)
    with pytest.raises(error, match=message):
        run("RngSkip", HANDLE, np.int64(algorithm), np.int64(1), state=device)
    np.testing.assert_array_equal(variable.read(), state)


def test_the_state_is_a_variable_of_int64_and_counts_are_scalars() -> None:
    """Missing variables, other types and vectors are refused."""
    with pytest.raises(NotFoundError, match="state"):
        run("RngSkip", HANDLE, PHILOX, np.int64(1))
    device, _ = with_state(np.array([1, 2, 3], np.int32))
    with pytest.raises(InvalidArgumentError, match="dtype of RNG state variable must be int64, not int32"):
        run("RngSkip", HANDLE, PHILOX, np.int64(1), state=device)
    device, _ = with_state([1, 2, 3])
    with pytest.raises(InvalidArgumentError, match=r"input 1 \(0-based\) must have shape \[\], not \[1\]"):
        run("RngSkip", HANDLE, np.array([1]), np.int64(1), state=device)
    with pytest.raises(InvalidArgumentError, match=r"Shape \[\d+,\d+\] would have more than 2\*\*63 - 1 elements"):
        run("StatefulUniform", HANDLE, PHILOX, np.array([2**40, 2**40]), dtype=DataType.FLOAT, state=device)


def test_nothing_determines_the_numbers_but_the_seed_of_the_device() -> None:
    """Runs differ; devices of one seed draw the same."""
    first, second = (DeviceState(3) for _ in range(2))
    runs = [run("NonDeterministicInts", np.array([4]), dtype=DataType.UINT64, state=first) for _ in range(2)]
    assert not np.array_equal(*runs)
    again = run("NonDeterministicInts", np.array([4]), dtype=DataType.UINT64, state=second)
    np.testing.assert_array_equal(runs[0], again)
    check_shapes("NonDeterministicInts", np.array([2, 0]), dtype=DataType.INT32)


def test_shapes_are_what_the_input_spells() -> None:
    """The third input, or the second of the first version; the state is three numbers."""
    assert shapes("StatefulUniform", (), (), np.array([2, 3]), dtype=DataType.FLOAT) == [(2, 3)]
    assert shapes("StatefulStandardNormal", (), np.array([2, 3]), dtype=DataType.FLOAT) == [(2, 3)]
    assert shapes("StatefulUniformInt", (), (), (2,), (), ()) == [(None, None)]
    assert shapes("RngReadAndSkip", (), (), ()) == [(3,)]
    assert shapes("RngSkip", (), (), ()) == []
    with pytest.raises(InvalidArgumentError, match="must be rank 0"):
        shapes("RngSkip", (), (1,), ())


@pytest.mark.parametrize("device", ["/device:CPU:0", "/device:CPU:1"])
async def test_a_session_keeps_the_state_where_it_is_placed(device: str) -> None:
    """All draws of one step use one state, in any order, and the next step goes on; a draw alone moves it on too."""
    b = GraphBuilder()
    handle = b.op("VarHandleOp", name="handle", dtype=DataType.INT64, shape=(3,), shared_name="state", device=device)
    b.op("AssignVariableOp", handle, np.array([-2, 3, 5]), name="init", dtype=DataType.INT64)
    for name in ("a", "b"):
        b.op("StatefulUniform", handle, PHILOX, THREE, name=name, dtype=DataType.FLOAT)
    b.op("ReadVariableOp", handle, name="read", dtype=DataType.INT64)
    async with open_session(b.graph_def(), "cpu:2") as session:
        await session.run([], targets=["init"])
        drawn = await session.run(["a", "b"])
        expected = TENSORFLOW["StatefulUniform", DataType.FLOAT]
        np.testing.assert_allclose(sorted(map(list, drawn)), sorted(map(list, expected)), rtol=1e-6)
        await session.run([], targets=["a"])
        (state,) = await session.run(["read"])
        np.testing.assert_array_equal(state, [-2 + 3 * 768, 4, 5])
