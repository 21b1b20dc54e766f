"""Results that a kernel keeps from one run to the next."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.kernels.arrays.latest import MOST_KEPT, keeping_results
from partita.devices.kernels.registry import lookup
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import construct

VECTORS = st.lists(st.integers(-2, 2), max_size=3).map(lambda values: np.array(values, np.int32))


def fingerprint(a: Array, b: Array) -> str:
    """A text that differs wherever shapes or values do."""
    return f"{a.shape} {a.tolist()} {b.shape} {b.tolist()}"


@given(st.lists(st.tuples(VECTORS, VECTORS), max_size=8))
def test_the_result_is_always_that_of_the_inputs(pairs: list[tuple[Array, Array]]) -> None:
    """In any row of calls, with equal and with changed values, sizes and ranks."""
    kept = keeping_results(fingerprint)
    for a, b in pairs:
        for one in (a, a.copy(), a.reshape(1, -1)):
            assert kept(one, b) == fingerprint(one, b)


def test_equal_inputs_are_computed_once() -> None:
    """Also where they are other arrays, of equal values; until there were many others in between."""
    calls: list[int] = []
    kept = keeping_results(lambda x: calls.append(x.item()))
    for value in (1, 1, 2, 2, 1, *range(MOST_KEPT + 2), 1):
        kept(np.array(value))
    assert calls == [1, 2, 0, *range(3, MOST_KEPT + 2), 1]


def test_bounds_of_a_slice_may_change_from_run_to_run() -> None:
    """One kernel of a strided slice, called with other bounds each time."""
    x = np.arange(10)
    node = construct("StridedSlice", x, *(np.array([1]),) * 3)
    factory = lookup("StridedSlice")
    assert factory is not None
    kernel = factory(node)
    for begin, end, stride in ((1, 4, 1), (2, 9, 3), (1, 4, 1), (8, 2, -2)):
        bounds = (np.array([bound]) for bound in (begin, end, stride))
        np.testing.assert_array_equal(kernel(x, *bounds), x[begin:end:stride])
