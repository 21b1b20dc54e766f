"""Shape functions of the discrete Fourier transforms.

A spectrum of real values has n // 2 + 1 frequencies on the last axis; n is an input.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.dims import integers
from ...analysis.shape_functions import ShapeContext, merge, shape_fn, with_rank_at_least
from ...dtypes import Shape


def _rank(op: str) -> int:
    return int(op[-2]) if op.endswith("D") else 1


@shape_fn("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def complex_transform(c: ShapeContext) -> Sequence[Shape]:
    """Unchanged."""
    return (with_rank_at_least(c.inputs[0], _rank(c.op)),)


@shape_fn("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def real_transform(c: ShapeContext) -> Sequence[Shape]:
    """The transform's lengths in place of the innermost sizes; a spectrum has n // 2 + 1 on the last axis."""
    rank = _rank(c.op)
    shape = with_rank_at_least(c.inputs[0], rank)
    merge(c.inputs[1], (rank,))
    if shape is None:
        return (None,)
    lengths = integers(c, 1)
    inner: list[int | None] = [None] * rank if lengths is None else [*lengths]
    if lengths and lengths[-1] and not c.op.startswith("I"):
        inner[-1] = lengths[-1] // 2 + 1
    return (shape[: len(shape) - rank] + tuple(inner),)
