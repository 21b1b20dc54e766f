"""Axes and sizes of one layout of images in the order of another, such as NHWC and NCHW."""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, kernel


def _layouts(node: Construction) -> tuple[str, str]:
    source, target = node.attrs["src_format"].decode(), node.attrs["dst_format"].decode()
    for text, name, what in ((source, "src_format", "Source"), (target, "dst_format", "Destination")):
        if len(text) not in (4, 5):
            raise InvalidArgumentError(f"{what} format must be of length 4 or 5, received {name} = {text}")
    if sorted(source) != sorted(target):
        raise InvalidArgumentError(
            f"Destination and source format must determine a permutation, got {source} and {target}"
        )
    return source, target


@kernel("DataFormatDimMap")
def data_format_dim_map(node: Construction) -> Kernel:
    """The axis of the target layout for each axis of the source layout; negative ones count from the end."""
    source, target = _layouts(node)
    places = np.array([target.index(letter) for letter in source])
    return lambda x: np.asarray(places[x % len(source)], x.dtype)


@kernel("DataFormatVecPermute")
def data_format_vec_permute(node: Construction) -> Kernel:
    """One value, or pair of values, per axis, in the order of the target layout; all axes, or the spatial ones."""
    source, target = _layouts(node)
    rank = len(source)

    def permute(x: Array) -> Array:
        if x.ndim not in (1, 2):
            raise InvalidArgumentError(f"input must be a vector or 2D tensor, but got shape {shape_text(x.shape)}")
        if x.shape[0] not in (rank, rank - 2):
            what = "1D input" if x.ndim == 1 else "First dimension of 2D input"
            raise InvalidArgumentError(
                f"{what} must be of size {rank - 2} or {rank}, but got shape {shape_text(x.shape)}"
            )
        if x.ndim == 2 and x.shape[1] != 2:
            raise InvalidArgumentError(
                f"Second dimension of 2D input must be of size 2, but got shape {shape_text(x.shape)}"
            )
        ignored = "" if x.shape[0] == rank else "NC"
        own = [letter for letter in source if letter not in ignored]
        return np.asarray(x[[own.index(letter) for letter in target if letter not in ignored]])

    return permute
