"""Classes drawn by unnormalised log probabilities (tf.random.categorical): TensorFlow's numbers for the same seeds.

Sample number n takes word pair n of the stream as a point between 0 and the sum of the row's probabilities, and is the
first class whose cumulative probability lies above the point. TensorFlow cuts large batches (about 4,000 samples of 2
classes, 700 of 100) at rows that depend on its number of threads; these numbers are those of one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from . import philox
from .philox import Position
from .random_ops import RESERVED, generator_of, scrambled

_DOUBLE = np.dtype(np.float64)
_FEW_SAMPLES = 8  # that are cheaper one by one, in Python
_FEW = 1 << 16  # comparisons of all samples with all classes, up to which they are cheaper than a search per row


def _checked(logits: Array, samples: Array) -> int:
    """The number of samples per row; InvalidArgumentError for arguments that TensorFlow refuses."""
    if logits.ndim != 2:
        raise InvalidArgumentError(f"logits should be a matrix, got shape {shape_text(logits.shape)}")
    if np.ndim(samples) != 0:
        raise InvalidArgumentError(f"num_samples should be a scalar, got shape {shape_text(np.shape(samples))}")
    count = int(samples)
    require(count >= 0, f"num_samples should be non-negative, got {count}")
    require(logits.shape[1] > 0, f"num_classes should be positive, got {logits.shape[1]}")
    return count


def _cumulative(logits: Array) -> tuple[Array, list[float]]:
    """Running sums of exp(logit - largest logit) along each row, and their ends.

    Classes of infinite or NaN logits count nothing.
    """
    wide = logits.astype(np.float64)
    powers = wide - np.maximum.reduce(wide, 1, keepdims=True)
    np.exp(powers, powers)
    sums = np.add.accumulate(powers, 1, out=powers)
    ends: list[float] = sums[:, -1].tolist()
    if min(ends) >= 1:  # the largest gives one, unless it is infinite or NaN; infinite ones below it give zero
        return sums, ends
    is_finite = np.isfinite(wide)
    top = np.max(wide, axis=1, keepdims=True, where=is_finite, initial=-np.finfo(np.float64).max)
    sums = np.cumsum(np.where(is_finite, np.exp(wide - top), 0.0), axis=1)
    return sums, sums[:, -1].tolist()


def _draw(place: Position, logits: Array, count: int, dtype: np.dtype[Any]) -> Array:
    """Class numbers [rows of `logits`, count]; the number of classes where a row has no finite logit."""
    cumulative, ends = _cumulative(logits)
    total = len(ends) * count
    if total <= _FEW_SAMPLES:
        few, rows = iter(philox.few_doubles(place, total)), zip(cumulative, ends, strict=True)
        drawn = [row.searchsorted(next(few) * end, "right") for row, end in rows for _ in range(count)]
        return np.array(drawn, dtype).reshape(-1, count)
    uniform = philox.uniform_from(philox.stream(place, -(-total // 2)), _DOUBLE).reshape(-1)[:total]
    points = uniform.reshape(-1, count) * cumulative[:, -1:]
    if total * logits.shape[1] <= _FEW:
        return np.asarray(np.add.reduce(cumulative[:, None, :] <= points[:, :, None], 2, dtype))
    found = [row.searchsorted(own, "right") for row, own in zip(cumulative, points, strict=True)]
    return np.stack(found).astype(dtype, copy=False)


@kernel("Multinomial")
def multinomial(node: Construction) -> Kernel:
    """Draws by the seeds of the node; each run of the node draws the following ones."""
    generator, dtype = generator_of(node), numpy_dtype(node.output_types[0])

    def sample(logits: Array, samples: Array) -> Array:
        count = _checked(logits, samples)
        if not count or not len(logits):
            return np.empty((len(logits), count), dtype)
        output_shape((len(logits), count), dtype)
        reserved = len(logits) * 2 * (-(-count // 4) * 4) * RESERVED
        return _draw(generator().reserve(reserved), logits, count, dtype)

    return sample


@kernel("StatelessMultinomial")
def stateless_multinomial(node: Construction) -> Kernel:
    """Draws by the seed given."""
    dtype = numpy_dtype(node.output_types[0])

    def sample(logits: Array, samples: Array, seed: Array) -> Array:
        place, count = scrambled(seed), _checked(logits, samples)
        if not count or not len(logits):
            return np.empty((len(logits), count), dtype)
        output_shape((len(logits), count), dtype)
        return _draw(place, logits, count, dtype)

    return sample
