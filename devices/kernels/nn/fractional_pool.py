"""Pooling by a fraction: regions of k or k + 1 rows and columns in random order (Graham, 2014), and its gradients.

    20 rows by a ratio of 1.5: 13 regions of 1 or 2 rows; the op outputs where they begin, and the end: [0, 2, ..., 20]

Regions that overlap share their last row with the next one. Images are [batch, rows, columns, channels].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import ceil, floor

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..random import philox
from ..random.random_ops import Generator, generator_of
from ..registry import Construction, Kernel, kernel

PoolReduce = Callable[..., Array]


def _shuffled_sizes(size: int, count: int, generator: Generator) -> list[int]:
    """Sizes of `count` regions: as equal as possible, the larger ones anywhere."""
    sizes = [size // count + (region < size % count) for region in range(count)]
    blocks = -(-count // 4)
    words = philox.stream(generator.reserve(blocks), blocks).reshape(-1).tolist()
    for region in range(count - 1):
        other = region + words[region] % (count - region)
        sizes[region], sizes[other] = sizes[other], sizes[region]
    return sizes


def _spread_sizes(size: int, count: int, generator: Generator) -> list[int]:
    """Sizes whose larger ones are spread evenly: region i begins at ceil((i + u) size / count), one u for all.

    u is bounded so that the first region is not larger, nor the last one smaller, than the others.
    """
    ratio, least = size / count, size // count
    bound = min((least + 2) / ratio - 1, (size + 1 - least) / ratio - (count - 1))
    u = float(philox.uniform_from(philox.stream(generator.reserve(1), 1), np.dtype(np.float64))[0, 0]) * bound
    starts = [1, *(ceil(ratio * (region + u)) for region in range(1, count)), size + 1]
    return [after - start for start, after in pairwise(starts)]


def _generator(node: Construction) -> Callable[[], Generator]:
    """Makes the generator of a run: a new one of the same seeds for each run, or one that goes on."""
    if not node.attrs["deterministic"]:
        if node.attrs["seed"] or node.attrs["seed2"]:
            raise InvalidArgumentError("Both seed and seed2 should be 0 if deterministic is false.")
        return generator_of(node)
    seeds = int(node.attrs["seed"]), int(node.attrs["seed2"])
    start = philox.seeded(*(seeds if any(seeds) else node.state.random_words(node.name)))
    return lambda: Generator(start)


def _output_sizes(x: Array, ratios: tuple[float, ...]) -> list[int]:
    require(x.ndim == 4, "tensor_in must be 4-dimensional")
    sizes = []
    for axis, (size, ratio) in enumerate(zip(x.shape, ratios, strict=True)):
        require(
            size >= ratio or axis in (0, 3),
            f"Pooling ratio is higher than input dimension size for dimension {axis}. Input dim size: {size} "
            f"pooling ratio: {ratio:g}",
        )
        sizes.append(floor(np.float32(size) / np.float32(ratio)))
    return sizes


def _spans(sequence: Array, size: int, overlapping: bool) -> Iterator[slice]:
    """The regions along an axis of `size` cells."""
    starts = sequence.tolist()
    for start, after in pairwise(starts):
        yield slice(start, min(after + overlapping, size))


def _reduced(x: Array, sequences: tuple[Array, Array], overlapping: bool, reduce: PoolReduce) -> Array:
    for axis, sequence in enumerate(sequences, 1):
        spans = list(_spans(sequence, x.shape[axis], overlapping))
        parts = [reduce(x[(slice(None),) * axis + (span,)], axis=axis) for span in spans]
        x = np.stack(parts, axis=axis)
    return x


def _cells(sequences: tuple[Array, Array], sizes: tuple[int, int], overlapping: bool) -> Array:
    """How many cells each region has: [rows, columns]."""
    lengths = [
        [span.stop - span.start for span in _spans(sequence, size, overlapping)]
        for sequence, size in zip(sequences, sizes, strict=True)
    ]
    return np.outer(lengths[0], lengths[1])


@kernel("FractionalMaxPool", "FractionalAvgPool")
def fractional_pool(node: Construction) -> Kernel:
    """The maximum or mean of each region, and where regions begin."""
    attrs, is_max = node.attrs, node.op == "FractionalMaxPool"
    overlapping, ratios = bool(attrs["overlapping"]), tuple(attrs["pooling_ratio"])
    require(len(ratios) == 4, "pooling_ratio field must specify 4 dimensions")
    for ratio in ratios:
        require(ratio >= 1, f"pooling_ratio cannot be smaller than 1, got: {ratio:g}")
    require(
        ratios[0] == 1 and ratios[3] == 1,
        f"Fractional {'max' if is_max else 'average'} pooling is not yet supported on the batch nor channel dimension.",
    )
    sizes_of = _spread_sizes if attrs["pseudo_random"] else _shuffled_sizes
    make_generator = _generator(node)

    def pool(x: Array) -> tuple[Array, Array, Array]:
        _, rows, columns, _ = _output_sizes(x, ratios)
        generator = make_generator()
        sizes = [sizes_of(n, m, generator) for n, m in zip(x.shape[1:3], (rows, columns), strict=True)]
        first, second = (np.concatenate([[0], np.cumsum(part)]).astype(np.int64) for part in sizes)
        sequences = first, second
        if is_max:
            return _reduced(x, sequences, overlapping, np.max), first, second
        sums = _reduced(x, sequences, overlapping, lambda part, axis: np.sum(part, axis=axis, dtype=x.dtype))
        cells = _cells(sequences, (x.shape[1], x.shape[2]), overlapping)[..., None]
        mean = sums / cells if x.dtype.kind == "f" else np.trunc(sums / cells)
        return mean.astype(x.dtype), first, second

    return pool


def _taps(sequences: tuple[Array, Array], sizes: tuple[int, int], overlapping: bool) -> Iterator[tuple[Array, Array]]:
    """Each place within a region, in row-major order: numbers of the cells there [rows, columns], and which exist.

    Cells are numbered row by row; a number that does not exist is zero.
    """
    places, counts = [], []
    for sequence, size in zip(sequences, sizes, strict=True):
        spans = list(_spans(sequence, size, overlapping))
        places.append(np.array([span.start for span in spans]))
        counts.append(np.array([span.stop - span.start for span in spans]))
    for row in range(counts[0].max(initial=0)):
        for column in range(counts[1].max(initial=0)):
            exists = np.logical_and.outer(row < counts[0], column < counts[1])
            numbers = np.add.outer((places[0] + row) * sizes[1], places[1] + column)
            yield np.where(exists, numbers, 0), exists


def _check_gradient(grad: Array, rows: Array, columns: Array) -> None:
    require(grad.ndim == 4, "out_backprop must be 4-dimensional")
    if not (rows.ndim == 1 and columns.ndim == 1 and len(rows) > grad.shape[1] and len(columns) > grad.shape[2]):
        raise InvalidArgumentError(
            f"pooling sequences of {shape_text(rows.shape)} and {shape_text(columns.shape)} do not fit out_backprop "
            f"{shape_text(grad.shape)}"
        )


@kernel("FractionalMaxPoolGrad")
def fractional_max_pool_grad(node: Construction) -> Kernel:
    """The gradient of each region goes to the first of its cells that is its maximum."""
    overlapping = bool(node.attrs["overlapping"])

    def back(x: Array, y: Array, grad: Array, rows: Array, columns: Array) -> Array:
        what = f"got shape {shape_text(x.shape)}"
        require(x.ndim == 4, f"orig_input should be a tensor of rank 4, {what}")
        require(x.size > 0, f"orig_input must not be empty, {what}")
        _check_gradient(grad, rows, columns)
        if not grad.size:
            return np.zeros_like(x)
        require(grad.shape == y.shape, "out_backprop and orig_output must have the same shape")
        images, height, width, channels = x.shape
        flat = x.reshape(images, height * width, channels)
        best = np.full(grad.shape, np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf, x.dtype)
        chosen = np.zeros(grad.shape, np.int64)
        for numbers, exists in _taps((rows, columns), (height, width), overlapping):
            values = flat[:, numbers]
            better = (values > best) & exists[..., None]
            best, chosen = np.where(better, values, best), np.where(better, numbers[..., None], chosen)
        require(np.array_equal(best, y), "tensor_out_dup is not the same as tensor_out")
        result = np.zeros_like(flat)
        image, channel = np.arange(images)[:, None, None, None], np.arange(channels)
        np.add.at(result, (image, chosen, channel), grad)
        return result.reshape(x.shape)

    return back


@kernel("FractionalAvgPoolGrad")
def fractional_avg_pool_grad(node: Construction) -> Kernel:
    """The gradient of each region is shared equally among its cells."""
    overlapping = bool(node.attrs["overlapping"])

    def back(shape: Array, grad: Array, rows: Array, columns: Array) -> Array:
        require(shape.shape == (4,), "original input tensor shape must be 1-dimensional and 4 elements")
        for size in shape.tolist():
            require(size >= 0, f"Expected a non-negative size, got {size}")
        for size in grad.shape:
            require(size > 0, f"out_backprop must be positive for all dimension, got:{size}")
        _check_gradient(grad, rows, columns)
        images, height, width, channels = shape.tolist()
        sizes = f"original input {shape.tolist()} and out_backprop {shape_text(grad.shape)}"
        require((images, channels) == (grad.shape[0], grad.shape[3]), f"{sizes} have other batches or depths")
        require(height >= grad.shape[1] and width >= grad.shape[2], f"{sizes} do not fit")
        share = grad / _cells((rows, columns), (height, width), overlapping)[..., None].astype(np.float64)
        by_cell = np.zeros((height * width, images, channels), np.float64)
        taps = list(_taps((rows, columns), (height, width), overlapping))
        for numbers, exists in reversed(taps):  # a cell sums its regions in their order, as TensorFlow does
            np.add.at(by_cell, numbers, np.moveaxis(np.where(exists[..., None], share, 0), 0, 2))
        return np.moveaxis(by_cell, 1, 0).reshape(images, height, width, channels).astype(grad.dtype)

    return back
