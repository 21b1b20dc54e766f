"""Kernels of set operations and the edit distance.

A set is the last axis of a dense tensor, a sequence that of a sparse tensor; the leading axes are groups. Sets are
given in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from ..strings.each_string import strings
from .sparse import check_entries, ordered_places

_OPERATIONS: dict[bytes, Callable[[set[Any], set[Any]], set[Any]]] = {  # elements of any type
    b"a-b": lambda a, b: a - b,
    b"b-a": lambda a, b: b - a,
    b"intersection": lambda a, b: a & b,
    b"union": lambda a, b: a | b,
}


def _values(elements: list[Any], like: Array) -> Array:  # elements of any type
    return strings(elements, (len(elements),)) if like.dtype == object else np.array(elements, like.dtype)


SetsByGroup = dict[tuple[int, ...], set[Any]]
"""the sets, of elements of any type, by the group they belong to; groups without one have an empty set"""
Grouped = tuple[SetsByGroup, tuple[int, ...]]
"""the sets, and the shape of the groups"""


def _dense_groups(x: Array) -> Grouped:
    if x.ndim < 2:
        raise InvalidArgumentError(f"Shape {shape_text(x.shape)} has rank {x.ndim} < 2")
    outer = x.shape[:-1]
    rows = x.reshape(-1, x.shape[-1]).tolist() if x.size else [[]] * prod(outer)
    return {group: set(row) for group, row in zip(np.ndindex(*outer), rows, strict=True)}, outer


def _sparse_groups(indices: Array, values: Array, shape: Array, validate: bool) -> Grouped:
    require(shape.ndim == 1, "Shape must be a 1D tensor.")
    sizes = tuple(shape.tolist())
    if len(sizes) < 2:
        raise InvalidArgumentError(f"Invalid rank {len(sizes)}.")
    check_entries(indices, values, sizes)
    if validate:
        ordered_places(indices, sizes)
    return {group: set(members) for group, members in _sequences(indices, values).items()}, sizes[:-1]


def _combined(name: bytes, a: Grouped, b: Grouped, like: Array, versus: str = "vs.") -> Any:
    """The operation on the sets, group by group, as a sparse tensor; InvalidArgumentError for different groups."""
    groups = a[1]
    if groups != b[1]:
        raise InvalidArgumentError(f"Mismatched shapes {shape_text(groups)} {versus} {shape_text(b[1])}")
    places: list[tuple[int, ...]] = []
    elements: list[Any] = []  # of the inputs' type
    longest = 0
    for group in sorted(a[0].keys() | b[0].keys()):
        members = sorted(_OPERATIONS[name](a[0].get(group, set()), b[0].get(group, set())))
        places += [(*group, i) for i in range(len(members))]
        elements += members
        longest = max(longest, len(members))
    indices = np.array(places, np.int64).reshape(len(places), len(groups) + 1)
    return indices, _values(elements, like), np.array([*groups, longest], np.int64)


def _operation(node: Construction) -> bytes:
    name: bytes = node.attrs["set_operation"].lower()
    if name not in _OPERATIONS:
        raise InvalidArgumentError(f"Invalid set_operation {name.decode()}.")
    return name


@kernel("DenseToDenseSetOperation")
def dense_to_dense(node: Construction) -> Kernel:
    """Of the sets in the last axis of both inputs."""
    name = _operation(node)
    return lambda a, b: _combined(name, _dense_groups(a), _dense_groups(b), a)


@kernel("DenseToSparseSetOperation")
def dense_to_sparse(node: Construction) -> Kernel:
    """Of the sets in the last axis of a dense tensor and in the sequences of a sparse one."""
    name, validate = _operation(node), node.attrs["validate_indices"]

    def run(a: Array, indices: Array, values: Array, shape: Array) -> Any:  # a sparse tensor
        return _combined(name, _dense_groups(a), _sparse_groups(indices, values, shape, validate), a, "vs")

    return run


@kernel("SparseToSparseSetOperation")
def sparse_to_sparse(node: Construction) -> Kernel:
    """Of the sets in the sequences of two sparse tensors."""
    name, validate = _operation(node), node.attrs["validate_indices"]

    def run(*parts: Array) -> Any:  # a sparse tensor
        a, b = (_sparse_groups(parts[k], parts[k + 1], parts[k + 2], validate) for k in (0, 3))
        return _combined(name, a, b, parts[1], "vs")

    return run


@kernel("SetSize")
def set_size(node: Construction) -> Kernel:
    """The number of different elements in each sequence of a sparse tensor."""
    validate = node.attrs["validate_indices"]

    def run(indices: Array, values: Array, shape: Array) -> Array:
        groups, outer = _sparse_groups(indices, values, shape, validate)
        sizes = np.zeros(output_shape(outer, np.dtype(np.int32)), np.int32)
        for group, members in groups.items():
            if any(place >= size for place, size in zip(group, outer, strict=True)):
                raise InternalError(f"group {list(group)} lies outside of the output tensor {shape_text(tuple(outer))}")
            sizes[group] = len(members)
        return sizes

    return run


def levenshtein(a: Sequence[Any], b: Sequence[Any]) -> int:  # elements of any type
    """The least number of insertions, deletions and substitutions that turn `a` into `b` (Wagner and Fischer, 1974)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for k, y in enumerate(b, 1):
            corner, row[k] = row[k], min(corner + (x != y), row[k] + 1, row[k - 1] + 1)
    return row[-1]


def _check_sparse(name: str, indices: Array, values: Array, shape: Array) -> None:
    for what, rank, kind, part in (
        ("indices", 2, "matrix", indices),
        ("values", 1, "vector", values),
        ("shape", 1, "vector", shape),
    ):
        if part.ndim != rank:
            raise InvalidArgumentError(f"{name}_{what} should be a {kind}, but got shape: {shape_text(part.shape)}")
    sizes = f"their shapes are: {shape_text(shape.shape if len(shape) != indices.shape[1] else values.shape)}"
    text = f"{sizes} and {shape_text(indices.shape)}"
    require(len(shape) == indices.shape[1], f"Expected {name}_shape.NumElements == #cols({name}_indices), {text}")
    require(len(values) == indices.shape[0], f"Expected {name}_values.NumElements == #rows({name}_indices), {text}")


def _sequences(indices: Array, values: Array) -> dict[tuple[int, ...], list[Any]]:  # elements of any type
    sequences: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        sequences.setdefault(tuple(place), []).append(value)
    return sequences


@kernel("EditDistance")
def edit_distance(node: Construction) -> Kernel:
    """Levenshtein distance of each pair of sequences; normalised: by the length of the truth."""
    normalize = node.attrs["normalize"]

    def distance(hypothesis: list[Any], truth: list[Any]) -> float:  # elements of any type
        steps = levenshtein(hypothesis, truth)
        if not normalize:
            return steps
        return steps / len(truth) if truth else float(np.inf) if hypothesis else 0.0

    def run(*parts: Array) -> Array:
        _check_sparse("hypothesis", *parts[:3])
        _check_sparse("truth", *parts[3:])
        sizes = [shape.tolist() for shape in (parts[2], parts[5])]
        if len(sizes[1]) < 2:
            raise InvalidArgumentError(
                f"Input SparseTensors must have rank at least 2, but truth_shape rank is: {len(sizes[1])}"
            )
        require(len(sizes[0]) == len(sizes[1]), "Expected hypothesis and truth tensors to have the same rank")
        groups = [max(pair) for pair in zip(sizes[0][:-1], sizes[1][:-1], strict=True)]
        for size in (sizes[0], sizes[1]):
            if prod(size) >= 2**63:
                raise InvalidArgumentError(f"Shape {shape_text(tuple(size))} would have more than 2**63 - 1 elements")
        result = np.zeros(groups, np.float32)
        hypotheses, truths = _sequences(*parts[:2]), _sequences(*parts[3:5])
        for group in hypotheses.keys() | truths.keys():
            if any(place >= size for place, size in zip(group, result.shape, strict=True)):
                raise InternalError(f"group {list(group)} lies outside of the output tensor {shape_text(result.shape)}")
            result[group] = distance(hypotheses.get(group, []), truths.get(group, []))
        return result

    return run
