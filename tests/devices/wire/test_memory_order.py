"""Arrays arrive with the order in memory that decides how numpy computes, in little more memory than their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.wire import WireMessage, decode, size_of
from partita.graph.dtypes import Array
from tests.devices.wire.drawn_values import layout, views
from tests.devices.wire.in_one_piece import encoded

BASE = np.random.default_rng(1).standard_normal((12, 40, 33)).astype(np.float32)
ORDERS: dict[str, Callable[[Array], Array]] = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T,
    "two axes exchanged": lambda x: x.swapaxes(0, 1),
    "gaps inside": lambda x: x[:, :, ::3],
    "gaps between rows": lambda x: x[:, :, 1:20],
    "gaps between planes": lambda x: x[:, 3:9],
    "gaps of even steps": lambda x: x[..., :32][..., ::2],
    "one column": lambda x: x[:, :, 4],
    "reversed": lambda x: x[:, ::-1],
    "reversed with gaps": lambda x: x[::-2, :, ::-2],
    "repeated": lambda x: np.broadcast_to(x[0, 0], (7, 9, 33)),
    "repeated inside": lambda x: np.broadcast_to(x[0, :, :1], (40, 33)),
    "a new axis": lambda x: x[:, None, ::2, :1],
    "one number": lambda x: np.broadcast_to(x[0, 0, 0], (40, 33)),
    "all at once": lambda x: np.broadcast_to(x[::2, None, ::-1, 1:30:4], (6, 3, 40, 8)).transpose(2, 1, 3, 0),
}
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sum": lambda x: np.sum(x),
    "sum of rows": lambda x: np.sum(x, axis=-1),
    "sum of columns": lambda x: np.sum(x, axis=0),
    "mean": lambda x: np.mean(x, axis=tuple(range(1, x.ndim))),
    "exp": np.exp,
    "tanh": np.tanh,
    "product": lambda x: np.matmul(x, np.ones((x.shape[-1], 5), x.dtype) / 3) if x.ndim > 1 else x,
    "product with itself": lambda x: np.matmul(x, x.swapaxes(-1, -2)) if x.ndim > 1 else np.dot(x, x),
    "einsum": lambda x: np.einsum("...i,...i->...", x, x),
    "running sum": lambda x: np.cumsum(x, axis=0),
}


def arrived(array: Array) -> Array:
    """The array behind a message."""
    result = decode(encoded([WireMessage({}, [array])]))[0].tensors[0]
    assert isinstance(result, np.ndarray)
    return result


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_computes_the_same_bits(order: str, name: str) -> None:
    """Sums, products and functions of what arrives have the bits of those of what was sent."""
    array, function = ORDERS[order](BASE), FUNCTIONS[name]
    assert function(arrived(array)).tobytes() == function(array).tobytes()


COPIES: tuple[Literal["C", "F", "A", "K"], ...] = ("C", "F", "A", "K")


@given(views(), st.sampled_from(COPIES))
def test_copies_have_the_same_order(array: Array, order: Literal["C", "F", "A", "K"]) -> None:
    """A copy in any order of numpy's is laid out alike."""
    one, other = arrived(array).copy(order), array.copy(order)
    assert one.flags.c_contiguous == other.flags.c_contiguous
    assert not array.size or layout(one) == layout(other)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 2)])
def test_reversed_axes_of_one_element(shape: tuple[int, ...]) -> None:
    """numpy takes another path for a single element that is reversed; an empty array has no order."""
    array = np.ones(shape)[::-1]
    assert arrived(array).strides == array.strides
    assert arrived(array[:, :0] if array.ndim > 1 else array[:0]).size == 0


@given(views())
def test_memory_is_bounded(array: Array) -> None:
    """What arrives takes less than three times the bytes that travelled, however wide the gaps were."""
    result = arrived(array)
    memory = result if result.base is None else result.base
    assert isinstance(memory, np.ndarray)
    assert memory.nbytes <= 3 * size_of(array)


def test_repeated_elements_travel_once() -> None:
    """A number broadcast to a million is four bytes and a header."""
    assert len(encoded([WireMessage({}, [np.broadcast_to(np.float32(1), (1000, 1000))])])) < 200
