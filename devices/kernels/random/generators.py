"""The ops of tf.random.Generator, whose state is a resource variable: bit for bit TensorFlow's numbers.

The state is a vector of int64: the lower and the upper half of the counter, then the key. A draw of n numbers moves the
counter on by 256 n blocks, whatever it needs:

    [5, 0, 7]  --StatefulUniform of shape [2]-->  [517, 0, 7]

Reading and moving on are one action, because kernels that use resources run one after another. TensorFlow's CPU has
Philox only; "auto" chooses it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ...state import Variable
from ..checks import require
from ..registry import Construction, Kernel, kernel
from ..variables.variables import variable_of
from .draws import Draw, as_shape, full_integers, integers, normal, truncated, uniform
from .philox import Position, seeded
from .random_ops import AUTO, PHILOX, RESERVED, Generator

_THREEFRY = 2
_STATE = 3  # elements of the state: a counter of two, a key of one
_MASK_32, _MASK_64 = (1 << 32) - 1, (1 << 64) - 1


def _check_algorithm(algorithm: int) -> None:
    if algorithm == _THREEFRY:
        raise UnimplementedError("Non-XLA devices don't support the ThreeFry algorithm.")
    require(algorithm in (PHILOX, AUTO), f"Unsupported algorithm id: {algorithm}")


def _scalar(value: Array, index: int) -> int:
    """The integer of input `index`; InvalidArgumentError unless it is a scalar."""
    if np.ndim(value) != 0:
        raise InvalidArgumentError(f"input {index} (0-based) must have shape [], not {shape_text(np.shape(value))}")
    return int(value)


def _state_of(variable: Variable) -> Array:
    """The value of the variable; InvalidArgumentError unless it can be the state of a generator."""
    value = variable.read()
    if variable.dtype != DataType.INT64:
        raise InvalidArgumentError(f"dtype of RNG state variable must be int64, not {dtype_name(variable.dtype)}")
    require(value.ndim == 1, f"RNG state must have one and only one dimension, not {value.ndim}")
    return value


def _skipped(place: Position, blocks: int) -> int:
    """The counter `blocks` (64 bits) further on, without the one carry that TensorFlow's sum of 32-bit words loses."""
    counter = place.skipped(blocks).counter
    is_lost = blocks >> 32 == _MASK_32 and (place.counter & _MASK_32) + (blocks & _MASK_32) > _MASK_32
    return (counter & _MASK_64) | (place.counter & ~_MASK_64) if is_lost else counter


def _move_on(variable: Variable, state: Array, blocks: int, first: int = 0) -> Position:
    """Moves the generator on by so many blocks; where it was. The state proper begins at element `first`."""
    size = len(state) - first
    require(size >= _STATE, f"For the Philox algorithm, the size of state must be at least {_STATE}; got {size}")
    low, high, key = (int(element) & _MASK_64 for element in state[first : first + _STATE].tolist())
    place = Position(key, high << 64 | low)
    counter = _skipped(place, blocks)
    moved = state.copy()
    moved[first : first + 2] = np.array([counter & _MASK_64, counter >> 64], np.uint64).view(np.int64)
    variable.value = moved
    return place


def drawing_state(node: Construction) -> Callable[[Array, Array, int], Position]:
    """A function from handle, algorithm and blocks to the place to draw them from, which moves the generator on.

    NotFoundError before the first assignment; InvalidArgumentError or UnimplementedError for a state or an algorithm
    that is none of TensorFlow's CPU.
    """
    find = variable_of(node)

    def reserve(handle: Array, algorithm: Array, blocks: int) -> Position:
        number, variable = _scalar(algorithm, 1), find(handle)
        state = _state_of(variable)
        _check_algorithm(number)
        return _move_on(variable, state, blocks)

    return reserve


_DISTRIBUTIONS: dict[str, Callable[[np.dtype[Any]], Draw]] = {
    "StatefulUniform": uniform,
    "StatefulStandardNormalV2": normal,
    "StatefulTruncatedNormal": truncated,
    "StatefulUniformFullInt": full_integers,
}


@kernel(*_DISTRIBUTIONS)
def stateful(node: Construction) -> Kernel:
    """Numbers of one distribution from a generator."""
    draw, reserve = _DISTRIBUTIONS[node.op](numpy_dtype(node.output_types[0])), drawing_state(node)

    def sample(handle: Array, algorithm: Array, shape: Array) -> Array:
        sizes = as_shape(shape)
        count = prod(sizes)
        return draw(reserve(handle, algorithm, count * RESERVED), count).reshape(sizes)

    return sample


@kernel("StatefulUniformInt")
def stateful_uniform_int(node: Construction) -> Kernel:
    """Integers in [minval, maxval) from a generator."""
    dtype, reserve = numpy_dtype(node.output_types[0]), drawing_state(node)

    def sample(handle: Array, algorithm: Array, shape: Array, low: Array, high: Array) -> Array:
        sizes, draw = as_shape(shape), integers(dtype, low, high)
        count = prod(sizes)
        return draw(reserve(handle, algorithm, count * RESERVED), count).reshape(sizes)

    return sample


@kernel("StatefulStandardNormal")
def stateful_standard_normal(node: Construction) -> Kernel:
    """Standard normal numbers from a generator whose state begins with the number of the algorithm."""
    draw, find = normal(numpy_dtype(node.output_types[0])), variable_of(node)

    def sample(handle: Array, shape: Array) -> Array:
        sizes, variable = as_shape(shape), find(handle)
        count, state = prod(sizes), _state_of(variable)
        require(len(state) > 0, "Size of tensor must be at least 1")
        _check_algorithm(int(state[0]))
        return draw(_move_on(variable, state, count * RESERVED, first=1), count).reshape(sizes)

    return sample


@kernel("RngReadAndSkip", "RngSkip")
def skip(node: Construction) -> Kernel:
    """Moves a generator on as a draw of `delta` numbers does; RngReadAndSkip gives its state before."""
    reserve, reads = drawing_state(node), node.op == "RngReadAndSkip"

    def move(handle: Array, algorithm: Array, delta: Array) -> Array | None:
        blocks = _scalar(delta, 2) * RESERVED & _MASK_64  # TensorFlow's product wraps around
        place = reserve(handle, algorithm, blocks)
        if not reads:
            return None
        return np.array([place.counter & _MASK_64, place.counter >> 64, place.key], np.uint64).view(np.int64)

    return move


@kernel("NonDeterministicInts")
def non_deterministic_ints(node: Construction) -> Kernel:
    """Integers of all values that nothing determines but the seed of the device, where it has one."""
    draw, state, name = full_integers(numpy_dtype(node.output_types[0])), node.state, node.name

    def make() -> Generator:
        return Generator(seeded(*state.random_words(name)))

    def sample(shape: Array) -> Array:
        sizes = as_shape(shape)
        count = prod(sizes)
        return draw(state.generator(name, make).reserve(count * RESERVED), count).reshape(sizes)

    return sample
