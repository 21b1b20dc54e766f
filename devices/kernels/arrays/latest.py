"""Results kept from one run of a node to the next, for kernels whose small integer inputs are often the same again.

Working out what begin and end of a slice mean, or the shapes that ConcatOffset gets, takes longer than to look up their
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ....graph.dtypes import Array

T = TypeVar("T")
MOST_KEPT = 256  # results of one kernel


def keeping_results(compute: Callable[..., T]) -> Callable[..., T]:
    """`compute`, a function of integer tensors of fixed types, called only for values that it has not seen lately.

    A loop that slices by its iteration sees as many of them as it has iterations, in every run.
    """
    results: dict[tuple[tuple[tuple[int, ...], bytes], ...], T] = {}

    def computed(*tensors: Array) -> T:
        key = tuple([(tensor.shape, tensor.tobytes()) for tensor in tensors])
        try:
            return results[key]
        except KeyError:
            pass
        if len(results) >= MOST_KEPT:
            results.clear()
        result = results[key] = compute(*tensors)
        return result

    return computed


def for_latest_shape(compute: Callable[[tuple[int, ...]], T]) -> Callable[[tuple[int, ...]], T]:
    """`compute`, a function of a shape, called only if the shape differs from the last call's."""
    latest: tuple[tuple[int, ...], T] | None = None

    def computed(shape: tuple[int, ...]) -> T:
        nonlocal latest
        known = latest
        if known is None or known[0] != shape:
            known = latest = shape, compute(shape)
        return known[1]

    return computed
