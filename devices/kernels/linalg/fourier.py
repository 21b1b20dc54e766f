"""Kernels of the discrete Fourier transforms over the innermost one, two or three axes.

Real transforms keep only the n // 2 + 1 non-negative frequencies of the last axis; an input longer than the transform
is cut at the end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel


def _rank(op: str) -> int:
    return int(op[-2]) if op.endswith("D") else 1


def _require_rank(x: Array, rank: int) -> None:
    if x.ndim < rank:
        raise InvalidArgumentError(f"Input must have rank of at least {rank} but got: {shape_text(x.shape)}")


@kernel("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def complex_transform(node: Construction) -> Kernel:
    """The transform (sums with exp(-2 pi i jk/n)), or its inverse, which divides by the number of elements."""
    rank, dtype = _rank(node.op), numpy_dtype(node.output_types[0])
    axes = tuple(range(-rank, 0))
    if rank == 1:  # without the loop over axes
        function: Any = np.fft.ifft if node.op.startswith("I") else np.fft.fft
    else:
        function = partial(np.fft.ifftn if node.op.startswith("I") else np.fft.fftn, axes=axes)

    def transformed(x: Array) -> Any:
        _require_rank(x, rank)
        return function(x).astype(dtype, copy=False) if x.size else x

    return transformed


def _cut(x: Array, needed: list[int]) -> Array:
    """The leading `needed` elements of the innermost axes of x; InvalidArgumentError where it has fewer."""
    for i, size in enumerate(needed):
        at = x.ndim - len(needed) + i
        if x.shape[at] < size:
            raise InvalidArgumentError(
                f"Input dimension {at} must have length of at least {size} but got: {x.shape[at]}"
            )
    index: tuple[Any, ...] = (..., *map(slice, needed))  # numpy has no type for such an index
    result: Array = x[index]
    return result


@kernel("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def real_transform(node: Construction) -> Kernel:
    """The non-negative half of a real signal's spectrum, or the real signal that has that half spectrum."""
    rank, dtype, to_signal = _rank(node.op), numpy_dtype(node.output_types[0]), node.op.startswith("I")
    axes = tuple(range(-rank, 0))

    def transformed(x: Array, fft_length: Array) -> Array:
        _require_rank(x, rank)
        require(fft_length.shape == (rank,), f"fft_length must have shape [{rank}]")
        lengths = fft_length.tolist()
        require(min(lengths) >= 0, f"fft_length must be non-negative, but is {lengths}")
        half = [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
        needed, produced = (half, lengths) if to_signal else (lengths, half)
        if not x.size or 0 in lengths:
            return np.zeros((*x.shape[: x.ndim - rank], *produced), dtype)
        cut = _cut(x, needed)
        if rank == 1:
            return (np.fft.irfft(cut, lengths[0]) if to_signal else np.fft.rfft(cut)).astype(dtype, copy=False)
        if to_signal:
            return np.fft.irfftn(cut, lengths, axes).astype(dtype)
        return np.fft.rfftn(cut, axes=axes).astype(dtype)

    return transformed
