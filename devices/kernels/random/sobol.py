"""SobolSample: points that fill the unit cube evenly, from scipy's table of direction numbers (Joe and Kuo, 2008).

The first point of the sequence, zero, is left out, as TensorFlow does.
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel

_BITS = 32
_MOST = (1 << 31) - 1  # points


@kernel("SobolSample")
def sobol_sample(node: Construction) -> Kernel:
    """The points behind the first `skip` ones: [num_results, dim]."""
    dtype = numpy_dtype(node.output_types[0])

    def run(dim: Array, num_results: Array, skip: Array) -> Array:
        from scipy.stats.qmc import Sobol  # slow to import, and few graphs need it

        for name, value in (("dim", dim), ("num_results", num_results), ("skip", skip)):
            if value.ndim != 0:
                raise InvalidArgumentError(f"{name} must be a scalar, got shape {shape_text(value.shape)}")
        size, count, first = int(dim), int(num_results), int(skip)
        require(size >= 1, "dim must be at least one")
        require(count >= 1, "num_results must be at least one")
        require(first >= 0, "skip must be non-negative")
        require(count + first < _MOST, f"num_results+skip must be less than {_MOST}")
        require(size <= Sobol.MAXDIM, f"dim must be at most {Sobol.MAXDIM}")
        output_shape((count, size), dtype)
        points = Sobol(size, scramble=False, bits=_BITS).fast_forward(first + 1)
        return np.asarray(points.random(count), dtype)

    return run
