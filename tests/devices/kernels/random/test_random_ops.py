"""Random numbers repeat for equal seeds, follow their distribution, and are the numbers TensorFlow draws."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.random import philox
from partita.devices.kernels.random.philox import Position
from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, construct, run, shapes

FLOATS = [DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE]
SEED = st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(
    counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, int, int, int]
) -> None:
    """The vectors that the authors publish with their library Random123 (kat_vectors, philox4x32 10)."""
    start = Position(sum(w << 32 * i for i, w in enumerate(key)), sum(w << 32 * i for i, w in enumerate(counter)))
    assert tuple(philox.stream(start, 1)[0]) == expected


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**128 - 1), st.integers(0, 5), st.integers(1, 5))
def test_any_part_of_the_stream_can_be_made_alone(key: int, counter: int, skip: int, count: int) -> None:
    """Blocks drawn from the middle equal those of the whole stream, also where the counter wraps."""
    start = Position(key, counter)
    whole = philox.stream(start, skip + count)
    np.testing.assert_array_equal(philox.stream(start.skipped(skip), count), whole[skip:])


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**128 - 1), st.integers(0, 299))
def test_many_blocks_are_the_same_as_few(key: int, counter: int, skip: int) -> None:
    """A few are computed in Python's integers, many in columns of numpy; carries of the counter go on in both."""
    start = Position(key, counter)
    many = philox.stream(start, 300)
    assert tuple(many[skip].tolist()) == philox.block(start.skipped(skip))
    np.testing.assert_array_equal(philox.blocks(start, np.array([skip, 299], np.uint64)), many[[skip, 299]])


# Drawn with TensorFlow 2.21 on a CPU: tf.raw_ops.<op>(shape=[5], seed=[1, 2]), float32.
TENSORFLOW = {
    "StatelessRandomUniform": [0.8440604, 0.19204533, 0.9962232, 0.1603874, 0.27199018],
    "StatelessRandomNormal": [0.5441101, 0.20738031, 0.07356432, 0.04643455, -1.3015898],
    "StatelessTruncatedNormal": [0.5441101, 0.20738031, 0.07356432, 0.04643455, 0.16820592],
}


@pytest.mark.parametrize("op", TENSORFLOW)
def test_stateless_numbers_are_those_of_tensorflow(op: str) -> None:
    """Bits agree for uniform numbers, logarithms and sines to rounding."""
    got = check_shapes(op, np.array([5], np.int32), np.array([1, 2], np.int64), dtype=DataType.FLOAT)
    np.testing.assert_allclose(got, np.array(TENSORFLOW[op], np.float32), rtol=1e-5)


# Two runs of one node in one session, seed=87654321, seed2=5, shape [3], float32.
TENSORFLOW_RUNS = {
    "RandomUniform": [[0.38831127, 0.6636828, 0.19191074], [0.05274153, 0.0710547, 0.80581987]],
    "RandomStandardNormal": [[-1.1780828, -0.7099414, -1.748158], [1.0473957, 2.1880736, 0.55879724]],
    "TruncatedNormal": [[-1.1780828, -0.7099414, -1.748158], [1.0473957, 0.55879724, -0.34573942]],
}


@pytest.mark.parametrize("op", TENSORFLOW_RUNS)
def test_stateful_numbers_are_those_of_tensorflow_run_after_run(op: str) -> None:
    """The second run starts where TensorFlow's second run starts."""
    state = DeviceState()
    attrs: dict[str, Any] = {"dtype": DataType.FLOAT, "seed": 87654321, "seed2": 5, "state": state}
    for expected in TENSORFLOW_RUNS[op]:
        np.testing.assert_allclose(run(op, np.array([3], np.int32), **attrs), np.array(expected, np.float32), rtol=1e-5)


@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
@given(st.integers(1, 2**62), st.integers(0, 40), st.sampled_from(FLOATS))
def test_a_seeded_node_repeats_after_a_reset_and_not_before(op: str, seed: int, count: int, dtype: DataType) -> None:
    """Its place in the stream is state of the device."""
    state, shape = DeviceState(), np.array([count, 2], np.int32)
    first, second = (run(op, shape, dtype=dtype, seed=seed, state=state) for _ in range(2))
    state.reset()
    np.testing.assert_array_equal(run(op, shape, dtype=dtype, seed=seed, state=state), first)
    assert count < 5 or not np.array_equal(first, second)


def test_unseeded_nodes_differ_and_a_seeded_device_repeats_them() -> None:
    """Zero seeds mean "any", which the device decides."""

    def draw(device_seed: int | None, name: str) -> np.ndarray:
        state, shape = DeviceState(device_seed), np.array([8], np.int32)
        return np.asarray(run("RandomUniform", shape, dtype=DataType.FLOAT, state=state, name=name))

    assert not np.array_equal(draw(None, "a"), draw(None, "a"))
    np.testing.assert_array_equal(draw(3, "a"), draw(3, "a"))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_moments_are_those_of_the_distribution(dtype: type[np.generic]) -> None:
    """Mean and variance of many numbers: 1/2 and 1/12, 0 and 1, 0 and about 0.774 within two deviations."""
    kind = dict(zip((np.float16, ml_dtypes.bfloat16, np.float32, np.float64), FLOATS, strict=True))[dtype]
    for op, mean, variance in (("Uniform", 0.5, 1 / 12), ("Normal", 0, 1)):
        x = run(f"StatelessRandom{op}", np.array([40000], np.int32), np.array([7, 8], np.int64), dtype=kind).astype(
            np.float64
        )
        assert abs(x.mean() - mean) < 0.02
        assert abs(x.var() - variance) < 0.03
        assert op != "Uniform" or 0 <= x.min() <= x.max() < 1
    x = run("StatelessTruncatedNormal", np.array([40000], np.int32), np.array([7, 8], np.int64), dtype=kind).astype(
        np.float64
    )
    assert abs(x.var() - 0.774) < 0.03
    assert np.abs(x).max() <= 2


@given(SEED, st.integers(-50, 50), st.integers(1, 100), st.sampled_from([np.int32, np.int64]))
def test_integers_stay_in_their_range(seed: tuple[int, int], low: int, span: int, dtype: type[np.generic]) -> None:
    """The upper end is excluded."""
    got = check_shapes(
        "StatelessRandomUniformInt",
        np.array([3, 4], np.int32),
        np.array(seed, np.int64),
        np.asarray(dtype(low)),
        np.asarray(dtype(low + span)),
    )
    assert ((low <= got) & (got < low + span)).all()


@given(SEED, st.sampled_from(FLOATS))
def test_a_seed_is_a_key_and_a_counter(seed: tuple[int, int], dtype: DataType) -> None:
    """The ops that take these two draw what the ops that take a seed draw."""
    key, counter = check_shapes("StatelessRandomGetKeyCounter", np.array(seed, np.int64))
    shape = np.array([7], np.int32)
    split = check_shapes("StatelessRandomUniformV2", shape, key, counter, np.int32(1), dtype=dtype)
    np.testing.assert_array_equal(split, run("StatelessRandomUniform", shape, np.array(seed, np.int64), dtype=dtype))


@given(st.integers(0, 20), st.integers(1, 99))
def test_shuffling_loses_no_row(count: int, seed: int) -> None:
    """The shuffled rows are a permutation, the same for the same seed."""
    rows = np.arange(count * 2).reshape(count, 2)
    got = run("RandomShuffle", rows, seed=seed)
    np.testing.assert_array_equal(got[np.argsort(got[:, 0])], rows)
    np.testing.assert_array_equal(got, run("RandomShuffle", rows, seed=seed))


@pytest.mark.parametrize(
    ("shape", "message"),
    [([-1], "Dimension -1 must be >= 0"), ([[2]], "shape must be a vector of {int32,int64}, got shape [1,1]")],
)
def test_shapes_that_are_none_are_refused(shape: list[int] | list[list[int]], message: str) -> None:
    """The message is TensorFlow's."""
    with pytest.raises(InvalidArgumentError) as caught:
        run("RandomUniform", np.array(shape, np.int32), dtype=DataType.FLOAT)
    assert caught.value.message == message


def test_seeds_keys_and_ranges_are_checked() -> None:
    """The errors are raised before anything is drawn."""
    two = np.array([2], np.int32)
    with pytest.raises(InvalidArgumentError, match=r"seed must have shape \[2\], not \[1\]"):
        run("StatelessRandomUniform", two, np.array([1], np.int64), dtype=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match="Need minval < maxval, got 3 >= 3"):
        run("RandomUniformInt", two, np.int32(3), np.int32(3))
    key, counter = np.array([1], np.uint64), np.array([1, 2], np.uint64)
    with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 9"):
        run("StatelessRandomUniformV2", two, key, counter, np.int32(9), dtype=DataType.FLOAT)


def test_the_shape_is_what_the_input_spells() -> None:
    """The inferred shape is the input's value or, if that is unknown, has its length."""
    assert shapes("RandomUniform", np.array([2, 3], np.int32), dtype=DataType.FLOAT) == [(2, 3)]
    assert shapes("RandomUniform", (2,), dtype=DataType.FLOAT) == [(None, None)]
    assert construct("RandomUniform", np.array([2], np.int32), dtype=DataType.FLOAT).output_types == (DataType.FLOAT,)


def test_nothing_is_drawn_from_any_range() -> None:
    """For an empty shape the range and the algorithm are not checked."""
    none, seed = np.array([0], np.int32), np.array([1, 2], np.int64)
    key, counter = np.array([1], np.uint64), np.array([1, 2], np.uint64)
    assert run("StatelessRandomUniformInt", none, seed, np.int32(3), np.int32(3)).shape == (0,)
    assert run("StatelessRandomNormalV2", none, key, counter, np.int32(9), dtype=DataType.FLOAT).shape == (0,)
    assert run("StatelessRandomUniformIntV2", none, key, counter, np.int32(9), np.int32(3), np.int32(3)).shape == (0,)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("StatelessRandomUniform", ((2,), (1,)), "Dimension must be 2 but is 1"),
        ("StatelessRandomNormalV2", ((2,), (2,), (2,), ()), "Dimension must be 1 but is 2"),
        ("StatelessRandomUniformInt", ((2,), (2,), (1,), ()), r"minval must be a scalar; got a tensor of shape \[1\]"),
        ("StatelessRandomGetKeyCounter", ((3,),), "must be equal, but are 3 and 2"),
    ],
)
def test_seeds_and_keys_have_known_shapes(op: str, inputs: tuple[tuple[int, ...], ...], message: str) -> None:
    """Wrong shapes are refused before the run."""
    with pytest.raises(InvalidArgumentError, match=message):
        shapes(op, *inputs, **({} if "Int" in op or "Get" in op else {"dtype": DataType.FLOAT}))
