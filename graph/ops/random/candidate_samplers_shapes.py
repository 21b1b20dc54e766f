"""Shape functions of the samplers of classes: attrs say how many are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn(
    "UniformCandidateSampler",
    "LogUniformCandidateSampler",
    "LearnedUnigramCandidateSampler",
    "ThreadUnsafeUnigramCandidateSampler",
    "FixedUnigramCandidateSampler",
    "AllCandidateSampler",
)
def candidate_sampler(c: ShapeContext) -> Sequence[Shape]:
    """The samples, and expected counts of the true classes [rows, num_true] and of the samples."""
    rows, sampled = with_rank(c.inputs[0], 2)[0], int(c.attrs["num_sampled"])
    return ((sampled,), (rows, int(c.attrs["num_true"])), (sampled,))


@shape_fn("ComputeAccidentalHits")
def compute_accidental_hits(c: ShapeContext) -> Sequence[Shape]:
    """Three vectors of unknown length."""
    merge_dims(with_rank(c.inputs[0], 2)[1], int(c.attrs["num_true"]))
    with_rank(c.inputs[1], 1)
    return ((None,),) * 3
