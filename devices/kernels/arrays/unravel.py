"""The kernel of UnravelIndex: flat positions in a row-major array become one index per axis."""

from __future__ import annotations

from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, dtype_name, from_numpy
from ..checks import require
from ..output_size import output_shape
from ..registry import simple


def _unravel_index(indices: Array, dims: Array) -> Array:
    """One row per axis. A negative position gives remainders that round to zero, as in C."""
    indices = np.asarray(indices)
    kind = f"Tensor<type: {dtype_name(from_numpy(indices))} shape: {shape_text(indices.shape)} values: >"
    require(indices.size > 0, f"received empty tensor indices: {kind}")
    if indices.ndim > 1:
        raise InvalidArgumentError(f'The indices can only be scalar or vector, got "{shape_text(indices.shape)}"')
    if np.ndim(dims) != 1:
        raise InvalidArgumentError(f'The indices can only be 1-D, got "{shape_text(np.shape(dims))}"')
    sizes = dims.tolist()
    for place, size in enumerate(sizes):
        require(size != 0, f"Input dims cannot contain a dim of zero, but dims contains zero at index {place}")
        require(size > 0, f"Input dims cannot be negative. Got dim = {size} at index {place}")
    total = prod(sizes)
    shown = " ".join(map(str, sizes))
    require(total <= np.iinfo(dims.dtype).max, f"Input dims product is causing integer overflow: ({shown})")
    require(not sizes or bool((indices < total).all()), "index is out of bound as with dims")
    output_shape((len(sizes), *indices.shape), dims.dtype)
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    rows = [_quotient(np.fmod(indices, stride * size), stride) for stride, size in zip(strides, sizes, strict=True)]
    return np.array(rows, dims.dtype).reshape((len(sizes), *indices.shape))


def _quotient(numbers: Array, divisor: int) -> Array:
    """The quotients, rounded to zero."""
    quotients: Array = np.sign(numbers) * (np.abs(numbers) // divisor)
    return quotients


simple("UnravelIndex", _unravel_index)
