"""Random bits of a shape and the state after them, by the generators of XLA: Philox and Threefry.

The state is a vector of uint64: the key, then the counter in one word, or for Philox in one or two. A draw moves the
counter on by the blocks that it needs. Types of 8 bits take a word of 32 bits each, as XLA has it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require, scalar_of, vector_of
from ..output_size import output_shape
from ..random import philox, threefry
from ..registry import Construction, Kernel, kernel

_PHILOX, _THREEFRY, _AUTO = 1, 2, 3
_MASK_64 = (1 << 64) - 1


@kernel("XlaRngBitGenerator")
def rng_bit_generator(node: Construction) -> Kernel:
    """The next state, and bits as unsigned integers."""
    dtype = numpy_dtype(node.output_types[1])
    require(dtype.kind == "u", f"Unsupported type for XlaRngBitGenerator: {dtype.name}; use an unsigned one")

    def draw(algorithm: Array, state: Array, shape: Array) -> tuple[Array, Array]:
        number, sizes = scalar_of(np.asarray(algorithm), "algorithm"), vector_of(np.asarray(shape), "shape")
        require(all(size >= 0 for size in sizes), f"shape must have non-negative sizes: {shape_text(sizes)}")
        if number in (_PHILOX, _AUTO):
            return _philox(np.asarray(state), output_shape(sizes, dtype), dtype)
        if number == _THREEFRY:
            return _threefry(np.asarray(state), output_shape(sizes, dtype), dtype)
        raise InvalidArgumentError(f"Unsupported algorithm id: {number}")

    return draw


def _philox(state: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The words of the blocks in order. A state of two elements has the key as the upper half of the counter, too."""
    require(
        state.shape in ((2,), (3,)), f"the state of Philox has 2 or 3 elements, not shape {shape_text(state.shape)}"
    )
    key, low, high = [*state.tolist(), *state.tolist()[:1]][:3]
    place = philox.Position(key, low | high << 64)
    count = prod(shape) * philox.words_per_number(dtype)
    blocks = -(-count // 4)
    words = philox.stream(place, blocks).reshape(-1)[:count]
    after = place.skipped(blocks).counter
    moved = np.array([key, after & _MASK_64, after >> 64][: len(state)], np.uint64)
    return moved, (philox.pairs(words) if dtype.itemsize == 8 else words).astype(dtype, copy=False).reshape(shape)


def _threefry(state: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """A block gives one number of 64 bits, or two of 32 that are neighbours along one axis."""
    require(state.shape == (2,), f"the state of Threefry has 2 elements, not shape {shape_text(state.shape)}")
    key, counter = state.tolist()
    axis = _axis_of_pairs(shape)
    halved = shape if dtype.itemsize == 8 or not shape else (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    count = prod(halved)
    first, second = threefry.blocks(key, np.uint64(counter) + np.arange(count, dtype=np.uint64))
    moved = np.array([key, (counter + count) & _MASK_64], np.uint64)
    if dtype.itemsize == 8:
        return moved, (first.astype(np.uint64) | second.astype(np.uint64) << np.uint64(32)).reshape(shape)
    if not shape:
        return moved, first.astype(dtype).reshape(())
    paired = np.stack([first.reshape(halved), second.reshape(halved)], axis + 1)
    doubled = (*shape[:axis], 2 * halved[axis], *shape[axis + 1 :])
    numbers = np.take(paired.reshape(doubled), np.arange(shape[axis]), axis)
    return moved, numbers.astype(dtype, copy=False)


def _axis_of_pairs(shape: tuple[int, ...]) -> int:
    """The first axis of even size, or else the longest one."""
    even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    return even[0] if even else int(np.argmax(shape)) if shape else 0
