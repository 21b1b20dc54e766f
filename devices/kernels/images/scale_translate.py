"""ScaleAndTranslate: images resampled with a filter kernel after scaling and moving; results are float32.

Rows and columns are resampled independently. The weights of one output cell sum to one; a cell whose position is
outside the input is zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel


def _lanczos(radius: float) -> Callable[[Array], Array]:
    return lambda x: np.where(np.abs(x) > radius, 0, np.sinc(x) * np.sinc(x / radius))


def _gaussian(x: Array) -> Array:
    return np.where(np.abs(x) >= 1.5, 0, np.exp(-(x**2) / (2 * 0.5**2)))


def _box(x: Array) -> Array:
    x = np.abs(x)
    return np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))


def _triangle(x: Array) -> Array:
    return np.asarray(np.maximum(0, 1 - np.abs(x)))


def _keys_cubic(x: Array) -> Array:
    """Keys (1981), a = -1/2."""
    x = np.abs(x)
    near, far = ((1.5 * x - 2.5) * x) * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell_cubic(x: Array) -> Array:
    """Mitchell and Netravali (1988), B = C = 1/3."""
    x = np.abs(x)
    near = ((7 * x - 12) * x) * x / 6 + 16 / 18
    far = (((-7 / 18) * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


_KERNELS: dict[bytes, tuple[float, Callable[[Array], Array]]] = {  # radius and function
    b"lanczos1": (1.0, _lanczos(1.0)),
    b"lanczos3": (3.0, _lanczos(3.0)),
    b"lanczos5": (5.0, _lanczos(5.0)),
    b"gaussian": (1.5, _gaussian),
    b"box": (0.5, _box),
    b"triangle": (1.0, _triangle),
    b"keyscubic": (2.0, _keys_cubic),
    b"mitchellcubic": (2.0, _mitchell_cubic),
}


def _weights(sizes: tuple[int, int], scale: float, move: float, filter_: bytes, antialias: bool) -> Array:
    """Weights [output, input] of one axis; where the image shrinks the kernel is widened, if `antialias`.

    Positions are float32, as in TensorFlow: they decide which cells lie on the edge of a kernel that ends in a step.
    """
    (size, new), (radius, function) = sizes, _KERNELS[filter_]
    inverse = np.float32(1) / np.float32(scale)
    width = max(inverse, np.float32(1)) if antialias else np.float32(1)
    places = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * inverse - inverse * np.float32(move)
    inside = (places >= 0) & (places <= size)
    cells = np.arange(size, dtype=np.float32)
    reach = np.float32(radius) * width
    first = np.clip(np.ceil(places - reach - np.float32(0.5)), 0, size - 1)
    last = np.clip(np.floor(places + reach - np.float32(0.5)), 0, size - 1)
    reached = (cells >= first[:, None]) & (cells <= last[:, None]) & inside[:, None]
    offsets = (cells + np.float32(0.5) - places[:, None]) * (np.float32(1) / width)
    weights = np.where(reached, function(offsets.astype(np.float64)), 0)
    total = weights.sum(axis=1, keepdims=True)
    small = np.abs(total) < 1000.0 * np.finfo(np.float32).tiny
    return np.where(small, 0, weights / np.where(small, 1, total)).astype(np.float32)


def _check(images: Array, size: Array, scale: Array, move: Array) -> None:
    if images.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(images.shape)}")
    if size.shape != (2,):
        raise InvalidArgumentError(f"output_shape_t must have two elements{shape_text(size.shape)}")
    require(bool((size > 0).all()), "output dimensions must be positive")
    for pair in (scale, move):
        if pair.shape != (2,):
            raise InvalidArgumentError(f"t must have two elements{shape_text(pair.shape)}")
    require(bool((scale > 0).all()), "Scale must be greater than zero.")


@kernel("ScaleAndTranslate", "ScaleAndTranslateGrad")
def scale_and_translate(node: Construction) -> Kernel:
    """The images at the new size; for the gradient op, the gradient distributed with the same weights."""
    name, antialias = node.attrs["kernel_type"].lower(), node.attrs["antialias"]
    if name not in _KERNELS:
        raise InvalidArgumentError(f"Unrecognized kernel type: {name.decode()}")

    def run(images: Array, size: Array, scale: Array, move: Array) -> Array:
        _check(images, size, scale, move)
        output_shape((len(images), *size.tolist(), images.shape[3]), np.dtype(np.float32))
        rows, columns = (
            _weights((images.shape[1 + i], int(size[i])), float(scale[i]), float(move[i]), name, antialias)
            for i in (0, 1)
        )
        wide = images.astype(np.float32, copy=False)
        result: Array = np.einsum("yh,bhwc,xw->byxc", rows, wide, columns, optimize=True)
        return result.astype(np.float32, copy=False)

    def back(grads: Array, images: Array, scale: Array, move: Array) -> Array:
        if grads.ndim != 4:
            raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(grads.shape)}")
        _check(images, np.maximum(grads.shape[1:3], 1), scale, move)
        rows, columns = (
            _weights((images.shape[1 + i], grads.shape[1 + i]), float(scale[i]), float(move[i]), name, antialias)
            for i in (0, 1)
        )
        result: Array = np.einsum("yh,byxc,xw->bhwc", rows, grads, columns, optimize=True)
        return result.astype(np.float32, copy=False)

    return back if node.op == "ScaleAndTranslateGrad" else run
