"""What an op is besides a count of operations: a matrix product, a pass of a convolution, a layer, by its sizes.

MatMul of (64, 128) by (128, 256)       Product(64, 256, 128)
Conv2D of 8 images                      Convolution("forward", 8, ...)
Partita>FlashAttention                  Layer("attention", "fwd", {"batch": 1, ...})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Product(NamedTuple):
    """An op as `batch` matrix products of m x k by k x n, all sizes at least 1.

    `layout` is that of BLAS, "TN" where the elements of k stand together in both factors (only the second factor is
    transposed), "NN" for plain factors, "NT" where only the first is transposed, "" where unknown. An implicit product
    never makes its factors: a convolution reads its image and not the rows of patches that stand for it.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    layout: str = ""
    is_implicit: bool = False


class Convolution(NamedTuple):
    """An op as one pass over a convolution of images: "forward", "to_input" or "to_filter".

    `rows` and `columns` are those of the output, `channels` those of the input, `stride` is the larger of both. A
    filter of `tall` x `broad` points may be `is_dilated`; `layout` is "NCHW" or "NHWC".
    """

    direction: str
    images: int
    rows: int
    columns: int
    channels: int
    filters: int
    tall: int
    broad: int
    stride: int
    groups: int
    is_dilated: bool
    layout: str


class Layer(NamedTuple):
    """An op as a whole layer of which there are fits: the part of a calibration that has them, and the kind of layer.

    `sizes` are the columns of `timing/fits/attention.py` ("attention"), `timing/fits/grouped.py` ("grouped") or of the
    family of kernels of that part (`timing/fits/kernels`).
    """

    part: Literal["attention", "grouped", "decode_attention", "latent_decode"]
    kind: str
    sizes: Mapping[str, int]
