"""Sums and products have the bits of a plain loop in the stated order, and those that TensorFlow 2.21 has."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.reductions.in_order import LARGE, SHORT
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

Combine = Callable[[Any, Any], Any]
COMBINE: dict[str, Combine] = {"Sum": operator.add, "Prod": operator.mul, "Mean": operator.add}


def numbers(shape: Sequence[int], seed: int, dtype: Any = np.float32) -> Array:
    """Numbers near one, whose sums and products round everywhere."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(dtype)


def in_four(combine: Combine, rows: list[Any]) -> Any:
    """Four running sums, of every fourth row each, as long as there are four more; then these and the rest in turn."""
    last = len(rows) // 4 * 4
    return reduce(combine, [reduce(combine, rows[i:last:4]) for i in range(4 if last else 0)] + rows[last:])


def of_vector(combine: Combine, x: Array) -> Any:
    """Registers of 32 bytes in four running sums, folded; then the rest."""
    lanes = 32 // x.itemsize
    whole = len(x) // lanes * lanes
    ends = [reduce(combine, x[whole:])] if whole < len(x) else []
    if whole:
        register = [in_four(combine, list(x[lane:whole:lanes])) for lane in range(lanes)]
        while len(register) > 1:
            half = len(register) // 2
            register = [combine(register[i], register[i + half]) for i in range(half)]
        ends.insert(0, register[0])
    return reduce(combine, ends)


def of_columns(combine: Combine, matrix: Array) -> list[Any]:
    """Four running sums in columns of whole registers with 16 rows or more, else one."""
    rows, columns = matrix.shape
    whole = columns - columns % (32 // matrix.itemsize) if rows >= 16 else 0
    return [(in_four if i < whole else reduce)(combine, list(matrix[:, i])) for i in range(columns)]


@pytest.mark.parametrize("op", COMBINE)
@given(size=st.integers(1, 300), seed=st.integers(0, 999), dtype=st.sampled_from([np.float32, np.float64]))
def test_all_numbers_are_reduced_register_by_register(op: str, size: int, seed: int, dtype: Any) -> None:
    """Whatever is left over: a register, a few, numbers that fill none."""
    x = numbers((size,), seed, dtype)
    expected = of_vector(COMBINE[op], x) / (size if op == "Mean" else 1)
    assert run(op, x, np.array([0])) == expected


@pytest.mark.parametrize("op", COMBINE)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(2, 20)),
    seed=st.integers(0, 999),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_columns_are_reduced_row_by_row(op: str, shape: tuple[int, int], seed: int, dtype: Any) -> None:
    """Four rows at a time if there are many, except in the columns beyond whole registers."""
    x = numbers(shape, seed, dtype)
    expected = np.array(of_columns(COMBINE[op], x), dtype) / (shape[0] if op == "Mean" else 1)
    np.testing.assert_array_equal(run(op, x, np.array([0])), expected)


@pytest.mark.parametrize("op", COMBINE)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, SHORT)),
    seed=st.integers(0, 999),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_short_rows_are_reduced_as_if_alone(op: str, shape: tuple[int, int], seed: int, dtype: Any) -> None:
    """Register by register, whether they fill one or not."""
    x = numbers(shape, seed, dtype)
    expected = np.array([of_vector(COMBINE[op], row) for row in x]) / (shape[1] if op == "Mean" else 1)
    np.testing.assert_array_equal(run(op, x, np.array([1])), expected)
    np.testing.assert_array_equal(run(op, x.reshape(-1, 1, 1, shape[1]), np.array([3, 2])), expected.reshape(-1, 1))


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    seed=st.integers(0, 999),
    keep=st.booleans(),
    data=st.data(),
)
def test_the_shape_of_a_tensor_does_not_matter(sizes: list[int], seed: int, keep: bool, data: st.DataObject) -> None:
    """Axes that lie together are one, in whatever order they are named; a transposed view is what it shows."""
    x, first = numbers(sizes, seed), data.draw(st.integers(1, len(sizes)))
    if data.draw(st.booleans()):
        x = x.T
    axes = np.array(data.draw(st.permutations(range(first))))
    actual = check_shapes("Sum", x, axes, keep_dims=keep)
    flat = run("Sum", np.ascontiguousarray(x).reshape(int(np.prod(x.shape[:first])), -1), np.array([0]))
    np.testing.assert_array_equal(np.reshape(actual, -1), np.reshape(flat, -1))


def test_one_number_is_left_however_it_is_named() -> None:
    """A row of one matrix row, a column of one matrix column and a vector are reduced alike."""
    x = numbers((77,), 0)
    expected = of_vector(operator.add, x)
    assert run("Sum", x.reshape(1, 77), np.array([1])) == expected
    assert run("Sum", x.reshape(77, 1), np.array([0])) == expected
    assert run("Sum", x.reshape(7, 11), np.array([1, 0])) == expected
    assert run("L2Loss", np.sqrt(x)) == of_vector(operator.add, np.sqrt(x) * np.sqrt(x)) / 2


def test_many_numbers_are_near_the_true_sum() -> None:
    """More than are added in order, and as many."""
    for size in (LARGE, LARGE + 1):
        x = numbers((size,), 1)
        np.testing.assert_allclose(run("Sum", x, np.array([0])), x.sum(dtype=np.float64), rtol=1e-5)


def roots(size: int, dtype: Any) -> Array:
    """The square roots of 2, 3, and so on."""
    return np.sqrt(np.arange(2, size + 2, dtype=np.float64)).astype(dtype)


def bits(value: Any) -> list[int]:
    """The bits of numbers, as integers."""
    values = np.reshape(value, -1)
    return [int(number) for number in values.view(f"u{values.itemsize}")]


@pytest.mark.parametrize(
    ("dtype", "size", "total", "mean", "half_the_squares"),
    [
        (np.float32, 7, 0x4174E560, 0x400BF0C9, 0x418C0000),
        (np.float32, 13, 0x420E6286, 0x402F3E2F, 0x42500000),
        (np.float32, 75, 0x43DE6DC4, 0x40BDCE4F, 0x44B6D000),
        (np.float32, 1000, 0x46A51030, 0x41A90656, 0x4874DF80),
        (np.float32, 4096, 0x482AC25E, 0x422AC25E, 0x4A801800),
        (np.float64, 13, 0x4041CC50B7458BF4, 0x4005E7C5CDDF712C, 0x404A000000000000),
        (np.float64, 1000, 0x40D4A2060BD2460A, 0x403520CACC9DF9E5, 0x410E9BF000000000),
    ],
)
def test_sums_have_tensorflows_bits(dtype: Any, size: int, total: int, mean: int, half_the_squares: int) -> None:
    """What Sum, Mean and L2Loss give for the square roots of 2, 3, and so on."""
    x, axis = roots(size, dtype), np.array([0])
    results = run("Sum", x, axis), run("Mean", x, axis), run("L2Loss", x)
    assert [bits(result) for result in results] == [[total], [mean], [half_the_squares]]


def test_columns_have_tensorflows_bits() -> None:
    """Eight in a register and more beyond it; the product of all numbers as well."""
    assert bits(run("Sum", roots(370, np.float32).reshape(37, 10), np.array([0]))) == [
        *(0x43EA7AB6, 0x43EB7528, 0x43EC6762, 0x43ED53C8, 0x43EE3BA5),
        *(0x43EF1FC1, 0x43F000A5, 0x43F0DEB4, 0x43F1BA36, 0x43F29368),
    ]
    x = roots(180, np.float32).reshape(20, 9) / np.float32(8)
    assert bits(run("Prod", x, np.array([0]))) == [
        *(0x3F3979FC, 0x3F87873F, 0x3FB987FB, 0x3FF480B4, 0x401D091C),
        *(0x4045F555, 0x4075EBA3, 0x4096F395, 0x40B77D8E),
    ]
    assert bits(run("Prod", x, np.array([0, 1]))) == [0x44D16DE7]


def test_rows_have_tensorflows_bits() -> None:
    """Short ones: a register and two numbers, three registers and six."""
    x = roots(90, np.float32)
    assert bits(run("Sum", x.reshape(9, 10), np.array([1]))) == [
        *(0x41C6477B, 0x4221DAC8, 0x424D9BB4, 0x42717925, 0x4288510F, 0x429648CA, 0x42A30E97, 0x42AEE5D0, 0x42B9FC30)
    ]
    assert bits(run("Mean", x.reshape(3, 30), np.array([1]))) == [0x4078DACB, 0x40D93F29, 0x410BB7A0]
