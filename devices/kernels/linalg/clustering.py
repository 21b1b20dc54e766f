"""The first centers of k-means: points drawn far from each other, with TensorFlow's draws for the same seed.

    KmeansPlusPlusInitialization([[0.], [1.], [9.]], num_to_sample=2, seed, num_retries_per_sample=0)
        -> any point first, say [0.]; then [9.] with 81 times the probability of [1.]

The rule is that of Arthur and Vassilvitskii, k-means++: the advantages of careful seeding, 2007; the Markov chain in
its place that of Bachem et al., Approximate k-means++ in sublinear time, 2016.
"""

from __future__ import annotations

import math

import numpy as np

from ....graph.dtypes import Array
from ..checks import require
from ..output_size import output_shape
from ..random import philox
from ..random.words import Words, below_wide
from ..registry import simple

_SINGLE = np.dtype(np.float32)


def kmeans_plus_plus(points: Array, num_to_sample: Array, seed: Array, num_retries: Array) -> Array:
    """Rows of `points` [n, d], each drawn with a probability that grows with its distance to those drawn before.

    Each is the best of 1 + `num_retries` candidates, or of 3 + log(count) if the number is negative: the one that
    leaves the smallest sum of squared distances to the nearest drawn point.
    """
    require(points.ndim == 2, "Input points should be a matrix.")
    for name, value in (("num_to_sample", num_to_sample), ("seed", seed), ("num_retries_per_sample", num_retries)):
        require(value.ndim == 0, f"Input {name} should be a scalar.")
    count, rows, retries = int(num_to_sample), len(points), int(num_retries)
    require(rows > 0, "Expected points.rows() > 0.")
    require(count > 0, "Expected num_to_sample > 0.")
    require(count <= rows, f"Expected num_to_sample <= points.rows(). {count} vs {rows}.")
    candidates = 1 + (retries if retries >= 0 else int(2 + math.log(count)))
    output_shape((candidates, rows), points.dtype)
    return points[_drawn(points, count, Words(philox.seeded(int(seed), 0)), candidates)]


def _drawn(points: Array, count: int, words: Words, candidates: int) -> list[int]:
    """The numbers of the drawn rows."""
    halves = (points * points).sum(axis=1) / np.float32(2)
    nearest, chosen = np.full(len(points), np.inf, _SINGLE), list[int]()
    for _ in range(count):
        cumulative = np.cumsum(nearest) if chosen else None
        rows = [_candidate(words, cumulative, len(points)) for _ in range(candidates)]
        # Half of |x - c|^2; the factor changes no choice.
        distances = [np.minimum(nearest, halves - points @ points[row] + halves[row]) for row in rows]
        potentials = [float(to_nearest.sum()) for to_nearest in distances]
        best = potentials.index(min(potentials))
        chosen.append(rows[best])
        nearest = distances[best]
    return chosen


def _candidate(words: Words, cumulative: Array | None, rows: int) -> int:
    """A row drawn by the distances of which the running sum is given; before there are any, all are equally likely."""
    if cumulative is None:
        return int(below_wide(words, rows, 1)[0])
    threshold = philox.uniform_from(words.take(1), _SINGLE)[0] * cumulative[-1]
    # The last row if all distances are 0.
    return min(int(np.searchsorted(cumulative, threshold, "right")), rows - 1)


def chain_initialization(distances: Array, seed: Array) -> Array:
    """The last state of a Markov chain over the candidates: number i follows with probability d_i / d_current."""
    require(distances.ndim == 1, "Input distances should be a vector.")
    require(seed.ndim == 0, "Input seed should be a scalar.")
    require(distances.size > 0, "Expected distances_tensor.size() > 0.")
    drawn = philox.uniform_from(Words(philox.seeded(int(seed), 0)).take(distances.size - 1), _SINGLE)
    current = 0
    for number in range(1, distances.size):
        if distances[number] > drawn[number - 1] * distances[current]:
            current = number
    return np.array(current, np.int64)


simple("KmeansPlusPlusInitialization", kmeans_plus_plus)
simple("KMC2ChainInitialization", chain_initialization)
