"""Shape functions of connectionist temporal classification.

Scores are [time, batch, classes], sequence lengths [batch].
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape


def _batch(c: ShapeContext, lengths: int) -> int | None:
    return merge_dims(with_rank(c.inputs[0], 3)[1], with_rank(c.inputs[lengths], 1)[0])


@shape_fn("CTCLoss")
def ctc_loss(c: ShapeContext) -> Sequence[Shape]:
    """One loss per sequence, one gradient per score."""
    indices, values = with_rank(c.inputs[1], 2), with_rank(c.inputs[2], 1)
    merge_dims(indices[0], values[0])
    steps, _, classes = with_rank(c.inputs[0], 3)
    batch = _batch(c, 3)
    return ((batch,), (steps, batch, classes))


@shape_fn("CTCGreedyDecoder")
def ctc_greedy_decoder(c: ShapeContext) -> Sequence[Shape]:
    """A sparse matrix, and one likelihood per sequence."""
    return ((None, 2), (None,), (2,), (_batch(c, 1), 1))


@shape_fn("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(c: ShapeContext) -> Sequence[Shape]:
    """`top_paths` sparse matrices, parts of one sort together, and as many likelihoods per sequence."""
    paths = c.attrs["top_paths"]
    return (*((None, 2),) * paths, *((None,),) * paths, *((2,),) * paths, (_batch(c, 1), paths))
