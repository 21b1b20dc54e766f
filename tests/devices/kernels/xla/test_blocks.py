"""Arrays are cut into blocks and joined again without loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run, shapes

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=3))
def test_blocks_make_the_array_again(axes: list[tuple[int, int, int]]) -> None:
    """For any number and size of blocks along each axis, with padding that is shorter than a block."""
    counts = [count for count, _, _ in axes]
    paddings = [min(width, size - 1) for _, size, width in axes]
    sizes = [count * size - width for (count, size, _), width in zip(axes, paddings, strict=True)]
    x = np.arange(np.prod(sizes)).reshape(sizes)
    total = int(np.prod(counts))
    blocks = check_shapes("XlaSplitND", x, N=total, num_splits=counts, paddings=paddings)
    blocks = list(blocks) if total > 1 else [blocks]
    joined = check_shapes("XlaConcatND", blocks, num_concats=counts, paddings=paddings)
    np.testing.assert_array_equal(joined, x)


def test_values_of_tensorflow() -> None:
    """Blocks go row by row; zeros fill up the last ones, and are dropped when blocks are joined."""
    blocks = run("XlaSplitND", X, N=4, num_splits=[2, 2], paddings=[2, 1])
    assert [block.tolist() for block in blocks] == [[[0, 1], [3, 4]], [[2, 0], [5, 0]], [[0, 0]] * 2, [[0, 0]] * 2]
    joined = run("XlaConcatND", [X, X + 10], num_concats=[1, 2], paddings=[1, 0])
    assert joined.tolist() == [[0, 1, 2, 10, 11, 12]]


def test_sizes_that_are_set() -> None:
    """An array may be cut short; a bound changes nothing."""
    cut = check_shapes("XlaSetDynamicDimensionSize", X, np.int32(1), np.int32(2))
    assert cut.tolist() == [[0, 1], [3, 4]]
    assert check_shapes("XlaSetBound", np.int32(3), np.int32(5)) == 3
    with pytest.raises(InvalidArgumentError, match="size must be at most 3, got 4"):
        run("XlaSetDynamicDimensionSize", X, np.int32(1), np.int32(4))


def test_what_is_refused() -> None:
    """Another number of blocks than there are, sizes that cannot be cut, more padding than array."""
    with pytest.raises(InvalidArgumentError, match=r"must match number of slices 4 from 'num_concats', but got 2\."):
        run("XlaConcatND", [X, X], num_concats=[2, 2])
    with pytest.raises(InvalidArgumentError, match=r"must be divisible by 'num_splits' 2\."):
        run("XlaSplitND", X, N=4, num_splits=[2, 2])
    with pytest.raises(InvalidArgumentError, match="are larger than the array"):
        run("XlaConcatND", [X], num_concats=[1, 1], paddings=[3, 0])


def test_unknown_sizes() -> None:
    """The rank stays."""
    assert shapes("XlaSplitND", (None, 4), N=2, num_splits=[1, 2], T=DataType.FLOAT) == [(None, None)] * 2
    assert shapes("XlaConcatND", [None, None], num_concats=[1, 2]) == [None]
