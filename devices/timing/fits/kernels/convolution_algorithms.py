"""The time of a convolution by each algorithm that computes it, from its shape and some shares of the datasheet.

    64 images of 256 channels, 14 x 14, 3 x 3 filters, 256 filters, float32, on a V100 with 14 TFLOP/s
        direct            7.4 Gflop at a low rate: 2.6 ms
        implicit product  12544 x 256 by 2304, tiles of 128 x 128, 64 and 32: 0.6 ms
        explicit product  the same, and patches of 116 MB written and read
        fused Winograd    16 multiplications for 4 outputs (F(2x2, 3x3)), in tiles of 8 x 8 outputs of an image
        Winograd          transforms of tiles of 4 x 4 outputs, 36 products between, transforms back (F(4x4, 3x3))
        FFT               544 complex products of tiles of 32 x 32 points, transforms before and after

The sizes are of one kind for all three passes: a gradient to the input is a convolution of the gradient of the output,
one to the filters sums over the pixels that a forward pass goes over. Sources: Lavin and Gray, Fast Algorithms for
Convolutional Neural Networks (2015); Chetlur et al., cuDNN: Efficient Primitives for Deep Learning (2014); Mathieu,
Henaff and LeCun, Fast Training of Convolutional Networks through FFTs (2013).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .....graph.arrays import Floats

DIRECT, IMPLICIT, EXPLICIT = "direct", "implicit product", "explicit product"
FUSED, WINOGRAD, FFT = "fused Winograd", "Winograd", "FFT"
ALGORITHMS = (DIRECT, IMPLICIT, EXPLICIT, FUSED, WINOGRAD, FFT)
FUSED_NEEDS = 50
"""the compute capability of Maxwell, times 10: fused Winograd kernels are in its machine code; those of several kernels
run on Kepler too (tensorflow/tensorflow#9339: "On K80s this makes a big difference")"""
WORD = 4.0
_TILES = ((128, 128, 1.0), (128, 64, 0.95), (128, 32, 0.85))
"""of implicit products: pixels, filters, and the share of the rate that the tile reaches"""
_WINOGRAD_TILES = ((128, 64, 1.0), (64, 64, 0.8))
_DEPTH_OF_A_TILE = 20.0
"""steps of the inner dimension that filling and emptying a tile's pipeline takes"""
_SHARPNESS = 4.0
"""of the soft maximum of arithmetic and memory"""
_DIRECT_RATE = 0.2
"""share of the implicit product's rate that direct kernels reach, which load each operand for few multiplications:
assumed, no row shows it"""
_FREQUENCIES, _FFT_TILE = 544.0, 32.0
"""a real transform of 32 x 32 points has 32 x 17 complex values"""


class ConvolutionShares(NamedTuple):
    """What a GPU reaches: shares of the datasheet's rate of float32, of its bandwidth, and how far waves of tiles are
    whole ones."""

    fused: float
    winograd: float
    implicit: float
    explicit: float
    fft: float
    bandwidth: float
    filters: float
    """of the bandwidth, in transforms of filters, whose points lie apart"""
    waves: float


class KernelRates(NamedTuple):
    """A GPU: operations and bytes by ns, and multiprocessors."""

    flops: float
    bytes: float
    units: float


class ConvolutionSizes(NamedTuple):
    """Columns of one pass over convolutions, a group each.

    `rows` x `columns` pixels of `images` images of which `deep` channels make `wide` ones with filters of `points`
    (`tall` x `broad`) points; with `is_sum` the filters are what is made, by a sum over the pixels. `other` is how many
    pixels the other image of the pass has. `has_tiles` says where Winograd's and Fourier's tiles apply: filters moved
    by 1.
    """

    images: Floats
    rows: Floats
    columns: Floats
    deep: Floats
    wide: Floats
    tall: Floats
    broad: Floats
    depth: Floats
    """of the implicit product: the multiplications of one result"""
    other: Floats
    groups: Floats
    has_tiles: NDArray[np.bool_]
    is_sum: NDArray[np.bool_]

    @property
    def points(self) -> Floats:
        """Of a filter."""
        return self.tall * self.broad

    @property
    def pixels(self) -> Floats:
        """Of all images."""
        return self.images * self.rows * self.columns

    @property
    def image_bytes(self) -> Floats:
        """Of both images, each read or written once."""
        return WORD * self.groups * (self.images * self.other * self.deep + self.pixels * self.wide)

    @property
    def filter_bytes(self) -> Floats:
        """Of the filters."""
        return WORD * self.groups * self.points * self.deep * self.wide


def times_ns(sizes: ConvolutionSizes, shares: ConvolutionShares, machine: KernelRates, has_fused: bool) -> Floats:
    """A row by algorithm (`ALGORITHMS`), a column by convolution; infinite where an algorithm does not apply."""
    is_3x3 = sizes.has_tiles & (sizes.tall == 3) & (sizes.broad == 3) & (sizes.groups == 1)
    is_fourier = sizes.has_tiles & (sizes.groups == 1) & (np.maximum(sizes.tall, sizes.broad) < _FFT_TILE / 2)
    is_fourier &= sizes.points > 1
    applies: Mapping[str, NDArray[np.bool_]] = {
        DIRECT: sizes.groups > 1,
        FUSED: is_3x3 & ~sizes.is_sum & has_fused,
        WINOGRAD: is_3x3,
        FFT: is_fourier,
    }
    by_name = {
        DIRECT: _direct(sizes, shares, machine),
        IMPLICIT: _implicit(sizes, shares, machine),
        EXPLICIT: _explicit(sizes, shares, machine),
        FUSED: _fused(sizes, shares, machine),
        WINOGRAD: _winograd(sizes, shares, machine),
        FFT: _fft(sizes, shares, machine),
    }
    every = np.ones(len(sizes.images), dtype=np.bool_)
    return np.array([np.where(applies.get(name, every), by_name[name], np.inf) for name in ALGORITHMS])


def _soft(left: Floats, right: Floats) -> Floats:
    """A soft maximum."""
    return np.asarray((left**_SHARPNESS + right**_SHARPNESS) ** (1 / _SHARPNESS), dtype=np.float64)


def _waves(blocks: Floats, slots: float, whole: float) -> Floats:
    """How many rounds of `slots` blocks there are, at least one."""
    return whole * np.ceil(blocks / slots) + (1 - whole) * np.maximum(blocks / slots, 1.0)


class _TiledProducts(NamedTuple):
    """Products of m x k by k x n."""

    products: Floats | float
    m: Floats
    n: Floats
    k: Floats


def _tiled_ns(of: _TiledProducts, tiles: tuple[tuple[int, int, float], ...], rate: float, units: float, per_unit: int,
              whole: float, splits: NDArray[np.bool_] | None = None) -> Floats:  # fmt: skip
    """Products in tiles, by the best of the tiles; those that may be split sum parts of k on units left idle."""
    times = []
    for m, n, share in tiles:
        blocks = of.products * np.ceil(of.m / m) * np.ceil(of.n / n)
        slots = units * per_unit
        parts = np.ones_like(blocks)
        if splits is not None:
            parts = np.where(splits, np.clip(np.floor(slots / blocks), 1.0, np.maximum(of.k / 256, 1.0)), 1.0)
        one_ns = 2.0 * m * n * (of.k / parts + _DEPTH_OF_A_TILE) * per_unit / (rate * share / units)
        times.append(_waves(blocks * parts, slots, whole) * one_ns)
    return np.asarray(np.min(times, axis=0), dtype=np.float64)


def _as_products(s: ConvolutionSizes) -> _TiledProducts:
    """The implicit product: a row of patches by filters, or patches by the gradients of all pixels."""
    m = np.where(s.is_sum, s.wide, s.pixels)
    n = np.where(s.is_sum, s.deep * s.points, s.wide)
    return _TiledProducts(s.groups, m, n, s.depth)


def _implicit(s: ConvolutionSizes, shares: ConvolutionShares, on: KernelRates) -> Floats:
    rate = on.flops * shares.implicit
    product_ns = _tiled_ns(_as_products(s), _TILES, rate, on.units, 2, shares.waves, s.is_sum)
    return _soft(product_ns, (s.image_bytes + s.filter_bytes) / (on.bytes * shares.bandwidth))


def _explicit(s: ConvolutionSizes, shares: ConvolutionShares, on: KernelRates) -> Floats:
    """Patches are written and read; the product is a library's, which splits what is too small to fill the GPU."""
    bandwidth = on.bytes * shares.bandwidth
    patches_ns = 2 * WORD * s.groups * s.pixels * s.points * s.deep / bandwidth
    every = np.ones(len(s.images), dtype=np.bool_)
    rate = on.flops * shares.explicit
    product_ns = _tiled_ns(_as_products(s), _TILES, rate, on.units, 2, shares.waves, every)
    return patches_ns + _soft(product_ns, (s.image_bytes + s.filter_bytes) / bandwidth)


def _direct(s: ConvolutionSizes, shares: ConvolutionShares, on: KernelRates) -> Floats:
    flops = 2.0 * s.groups * np.where(s.is_sum, s.deep * s.points * s.wide, s.pixels * s.wide) * s.depth
    arithmetic_ns = flops / (on.flops * shares.implicit * _DIRECT_RATE)
    return _soft(arithmetic_ns, (s.image_bytes + s.filter_bytes) / (on.bytes * shares.bandwidth))


def _fused(s: ConvolutionSizes, shares: ConvolutionShares, on: KernelRates) -> Floats:
    """F(2x2, 3x3) in one kernel behind a transform of the filters: 16 products for the 16 2 x 2 tiles of 8 x 8
    outputs and 32 filters a block."""
    blocks = s.images * np.ceil(s.rows / 8) * np.ceil(s.columns / 8) * np.ceil(s.wide / 32)
    one_ns = 2.0 * 16 * 16 * 32 * (s.deep + _DEPTH_OF_A_TILE) * 2 / (on.flops * shares.fused / on.units)
    products_ns = _waves(blocks, 2 * on.units, shares.waves) * one_ns
    moved = s.image_bytes + s.filter_bytes * 16 / 9
    filters_ns = s.filter_bytes * (1 + 16 / 9) / (on.bytes * shares.filters)
    return filters_ns + _soft(products_ns, moved / (on.bytes * shares.bandwidth))


def _winograd(s: ConvolutionSizes, shares: ConvolutionShares, on: KernelRates) -> Floats:
    """F(4x4, 3x3) in four kernels: transforms of images and of filters, 36 products of tiles, the transform back."""
    tiles = s.images * np.ceil(s.rows / 4) * np.ceil(s.columns / 4)
    made = np.where(s.is_sum, s.deep, tiles)
    of = _TiledProducts(36.0, s.wide, made, np.where(s.is_sum, tiles, s.deep))
    rate, bandwidth = on.flops * shares.winograd, on.bytes * shares.bandwidth
    transformed = 36 * WORD * tiles * (s.deep + s.wide)
    filters = s.filter_bytes * 4
    products_ns = _tiled_ns(of, _WINOGRAD_TILES, rate, on.units, 4, shares.waves, s.is_sum)
    return (
        _soft(products_ns, (transformed + filters) / bandwidth)
        + (s.image_bytes + transformed) / bandwidth
        + (s.filter_bytes + filters) / (on.bytes * shares.filters)
    )


def _fft(s: ConvolutionSizes, shares: ConvolutionShares, on: KernelRates) -> Floats:
    """Tiles of 32 x 32 points: a complex product by frequency, 8 operations a multiplication and sum."""
    tall, broad = (np.maximum(_FFT_TILE + 1 - side, 1.0) for side in (s.tall, s.broad))
    tiles = s.images * np.ceil(s.rows / tall) * np.ceil(s.columns / broad)
    made = np.where(s.is_sum, s.deep, tiles)
    of = _TiledProducts(_FREQUENCIES, s.wide, made, np.where(s.is_sum, tiles, s.deep))
    rate, bandwidth = on.flops * shares.fft / 4, on.bytes * shares.bandwidth
    transformed = 2 * WORD * _FREQUENCIES * (tiles * (s.deep + s.wide) + s.deep * s.wide)
    products_ns = _tiled_ns(of, _WINOGRAD_TILES, rate, on.units, 4, shares.waves, s.is_sum)
    return _soft(products_ns, transformed / bandwidth) + (s.image_bytes + s.filter_bytes + transformed) / bandwidth
