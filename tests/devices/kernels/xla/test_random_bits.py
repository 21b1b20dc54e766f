"""Random bits are those of TensorFlow's compiler on a CPU, and the state moves on by what was drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, shapes

PHILOX, THREEFRY, AUTO = 1, 2, 3
TOP = 2**64


def draw(algorithm: int, state: list[int], shape: list[int], dtype: DataType) -> list[object]:
    """The next state and the bits, as Python integers."""
    inputs = np.int32(algorithm), np.array(state, np.uint64), np.array(shape, np.int32)
    return [np.asarray(value).tolist() for value in check_shapes("XlaRngBitGenerator", *inputs, dtype=dtype)]


def test_philox() -> None:
    """A state of two elements has the key in the counter, too; the counter carries into its upper half."""
    words = [2100602697, 2847456232, 2074354647, 800269529, 1828267006]
    assert draw(PHILOX, [1, 2], [5], DataType.UINT32) == [[1, 4], words]
    assert draw(AUTO, [1, 2], [5], DataType.UINT32) == [[1, 4], words]
    assert draw(PHILOX, [1, 2], [5], DataType.UINT8) == [[1, 4], [word % 256 for word in words]]
    assert draw(PHILOX, [1, 2, 3], [2], DataType.UINT64) == [[1, 3, 3], [5869932932755744586, 13107052260063114245]]
    state, bits = draw(PHILOX, [2**63 + 5, TOP - 2, 7], [9], DataType.UINT32)
    assert state == [2**63 + 5, 1, 8]
    assert isinstance(bits, list)
    assert bits[-1] == 3008140840


def test_threefry() -> None:
    """A block of two words is a pair along the first even axis, or else along the longest one."""
    assert draw(THREEFRY, [1, 2], [2], DataType.UINT64) == [[1, 4], [9236835810183407956, 16087790271692313299]]
    assert draw(THREEFRY, [1, 2], [3, 2], DataType.UINT32) == [
        [1, 5],
        [[43444564, 2150618427], [3979645651, 3745730563], [1672743891, 4240503393]],
    ]
    assert draw(THREEFRY, [1, 2], [3, 3], DataType.UINT32) == [
        [1, 8],
        [
            [43444564, 3979645651, 1672743891],
            [2150618427, 3745730563, 4240503393],
            [2109414752, 2534981805, 2868795927],
        ],
    ]
    assert draw(THREEFRY, [1, 2], [], DataType.UINT32) == [[1, 3], 43444564]
    assert draw(THREEFRY, [1, 2], [1, 3], DataType.UINT8) == [[1, 4], [[84, 59, 211]]]


@given(st.sampled_from([PHILOX, THREEFRY]), st.integers(0, TOP - 1), st.integers(0, TOP - 1), st.integers(0, 9))
def test_drawing_goes_on_where_it_stopped(algorithm: int, key: int, counter: int, blocks: int) -> None:
    """Two draws give what one draw of both gives."""
    per_block = 2 if algorithm == PHILOX else 1
    state = [key, counter, 5] if algorithm == PHILOX else [key, counter]
    middle, first = draw(algorithm, state, [blocks * per_block], DataType.UINT64)
    assert isinstance(middle, list)
    assert isinstance(first, list)
    end, second = draw(algorithm, middle, [per_block], DataType.UINT64)
    assert isinstance(second, list)
    assert draw(algorithm, state, [(blocks + 1) * per_block], DataType.UINT64) == [end, first + second]


def test_what_is_refused() -> None:
    """Unknown generators, states of another length, and types with a sign, which XLA's kernel does not take."""
    with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 0"):
        draw(0, [1, 2], [2], DataType.UINT32)
    with pytest.raises(InvalidArgumentError, match=r"the state of Threefry has 2 elements, not shape \[3\]"):
        draw(THREEFRY, [1, 2, 3], [2], DataType.UINT32)
    with pytest.raises(InvalidArgumentError, match="Unsupported type for XlaRngBitGenerator: int32"):
        draw(PHILOX, [1, 2], [2], DataType.INT32)
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 1 but is rank 2"):
        shapes("XlaRngBitGenerator", (), (2, 2), (1,), dtype=DataType.UINT32)
