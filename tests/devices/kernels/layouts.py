"""Runs a kernel again on inputs that lie differently in memory: nothing but their values may count.

    dense       0 1 2 3 4 5
    transposed  0 3 1 4 2 5     its axes from the last to the first; elements of a vector lie two places apart
    reversed    5 4 3 2 1 0     negative strides
    broadcast   0 1 2           one row, with a stride of zero where rows follow each other

Kernels get such views from each other (Transpose, BroadcastTo, Reverse and the slices copy nothing). The results, or
the errors, must be those for dense inputs, and no input may be written to. They are equal bit for bit, floats up to 4
units in the last place: on some processors numpy has other loops for dense inputs, which round otherwise. Each
combination of op, types, ranks and attrs is run so once in a process; `CHECKED` counts the runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.devices.kernels.registry import Construction
from partita.graph.dtypes import Array

Outcome = Callable[[Sequence[Any]], Any]
"""what a kernel returns for these inputs, or the error that it raises"""

CHECKED: Counter[str] = Counter()
_SEEN: set[object] = set()
_MOST = 1 << 16  # elements of an input


def check_layouts(node: Construction, outcome: Outcome, inputs: Sequence[Any]) -> None:
    """Fails unless a new kernel of `node` gives for all views of the inputs what it gives for dense ones."""
    arrays = [np.asarray(value) for value in inputs]
    key = (node.op, node.input_types, tuple(array.ndim for array in arrays))
    if key in _SEEN or max((array.size for array in arrays), default=_MOST) >= _MOST:
        return
    _SEEN.add(key)
    dense = [_dense(array) for array in arrays]
    expected = outcome(dense)
    assert _unchanged(dense, arrays), f"{node.op} writes to its inputs"
    for layout in (_transposed, _reversed):
        _compare(node, layout.__name__, outcome, dense, [layout(array) for array in dense], expected)
    for port, rows in _broadcasts(dense):
        equal = [_dense(rows) if i == port else array for i, array in enumerate(dense)]
        views = [rows if i == port else array for i, array in enumerate(dense)]
        _compare(node, f"broadcast {port}", outcome, equal, views, outcome(equal))


def _compare(
    node: Construction, layout: str, outcome: Outcome, dense: Sequence[Array], views: Sequence[Array], expected: Any
) -> None:
    for view in views:
        view.flags.writeable = False
    actual = outcome(views)
    CHECKED[node.op] += 1
    place = f"{node.op} of {layout} inputs"
    assert _unchanged(views, dense), f"{place} writes to them"
    is_same = _close if any(array.dtype.kind == "c" for array in dense) else _same
    assert _same_outcome(actual, expected, is_same), f"{place}: {actual!r} for {expected!r}"


def _dense(array: Array) -> Array:
    return np.array(array, order="C", copy=True)


def _transposed(array: Array) -> Array:
    if array.ndim == 1:
        spread = np.empty(2 * array.size, array.dtype)
        spread[::2], spread[1::2] = array, array[::-1]
        return spread[::2]
    return _dense(array.T).T


def _reversed(array: Array) -> Array:
    back = (slice(None, None, -1),) * array.ndim or ...
    return _dense(array[back])[back]


def _broadcasts(arrays: Sequence[Array]) -> Iterator[tuple[int, Array]]:
    """For each input of several rows, by its port, as many times the first row, with a stride of zero."""
    for port, array in enumerate(arrays):
        if array.ndim and array.shape[0] > 1:
            yield port, np.broadcast_to(array[:1].copy(), array.shape)


def _unchanged(arrays: Sequence[Array], before: Sequence[Array]) -> bool:
    return all(_bits(x) == _bits(y) for x, y in zip(arrays, before, strict=True))


def _bits(array: Array) -> object:
    """What has to be equal; texts and the objects behind handles are compared themselves."""
    return array.reshape(-1).tolist() if array.dtype == object else np.ascontiguousarray(array).tobytes()


def _same_outcome(actual: Any, expected: Any, is_same: Callable[[Array, Array], bool]) -> bool:
    """Whether both are the same error, or tensors of the same types and shapes that `is_same` accepts."""
    if isinstance(expected, Exception):
        return (type(actual), str(actual)) == (type(expected), str(expected))
    if isinstance(actual, Exception):
        return False
    results, others = (x if isinstance(x, tuple) else (x,) for x in (actual, expected))
    return len(results) == len(others) and all(
        (type(x), np.asarray(x).dtype, np.shape(x)) == (type(y), np.asarray(y).dtype, np.shape(y))
        and is_same(np.asarray(x), np.asarray(y))
        for x, y in zip(results, others, strict=True)
    )


def _same(x: Array, y: Array) -> bool:
    """Bit for bit; the objects that variants refer to have no bits."""
    if y.dtype == object:
        return all(a == b for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True) if isinstance(b, bytes))
    if _bits(x) == _bits(y):
        return True
    if y.dtype.kind != "f":
        return False
    finite = np.isfinite(y)
    with np.errstate(all="ignore"):
        is_near = np.abs(x - y) <= 4 * np.spacing(np.abs(y))
    return bool(np.all(np.where(finite, is_near, (x == y) | (np.isnan(x) & np.isnan(y)))))


def _close(x: Array, y: Array) -> bool:
    if y.dtype == object:
        return _same(x, y)
    return np.allclose(x, y, 1e-4, 1e-4 * float(np.abs(y).max(initial=0, where=np.isfinite(y))), equal_nan=True)
