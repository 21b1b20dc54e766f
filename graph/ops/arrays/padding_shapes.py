"""Shape functions of padding and of its gradient.

Every size grows (gradient: shrinks) by its border; where the widths are unknown, their number of rows still gives the
rank.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import shape_text
from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank, with_size
from ...dtypes import Array, Shape


def _padded(c: ShapeContext, sign: int) -> Shape:
    widths = c.constant(1)
    rows, columns = with_rank(c.inputs[1], 2)
    if columns is not None:
        with_size(columns, 2)
    source = c.inputs[0]
    rank = len(with_rank(source, rows)) if rows is not None else None if source is None else len(source)
    if rank is None:
        return None
    if widths is None:
        return (None,) * rank
    return _grown(with_rank(source, rank), widths, sign)


def _grown(source: tuple[int | None, ...], widths: Array, sign: int) -> Shape:
    sizes: list[int | None] = []
    for size, (before, after) in zip(source, widths.tolist(), strict=True):
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before} {after}")
        sizes.append(None if size is None else size + sign * (before + after))
    if any(size is not None and size < 0 for size in sizes):
        raise InvalidArgumentError(f"Total paddings must be less than the input dimension size: {shape_text(source)}")
    return tuple(sizes)


@shape_fn("Pad", "MirrorPad")
def pad(c: ShapeContext) -> Sequence[Shape]:
    """Every size plus its border on both sides."""
    return (_padded(c, 1),)


@shape_fn("PadV2")
def pad_v2(c: ShapeContext) -> Sequence[Shape]:
    """As Pad; the value to pad with must be a scalar."""
    padded = _padded(c, 1)
    if c.constant(1) is not None:
        with_rank(c.inputs[2], 0)
    return (padded,)


@shape_fn("MirrorPadGrad")
def mirror_pad_grad(c: ShapeContext) -> Sequence[Shape]:
    """Every size without its border."""
    return (_padded(c, -1),)
