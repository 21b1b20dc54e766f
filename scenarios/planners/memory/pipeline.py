"""The layers of each pipeline rank, and how many micro-batches of them wait for their backward pass when most do.

    pp 4, 8 micro-batches, 8 layers, "1f1b"
        rank 0: 2 layers, 4 micro-batches wait: 8 layers' activations; rank 3: 2 layers' and the head
    pp 4, interleave 2, 8 micro-batches: rank 0 begins with 2 * 3 + 4 forwards and one more: 11 of its 8 * 2, each of
        1 layer: 1 + (pp - 1) / (pp * interleave) times the 8 of "1f1b" (Korthikanti et al. 2022, section 4.2.3)

The order of calls is that of `graph.parallel.pipelines.schedules`. A rank that has no more of anything than another one
is never the fullest, so that few ranks are left of a deep pipeline; the ranks of a schedule are looked at once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats, Numbers
from ...models.stage_cut import even_stages
from ..configurations import SCHEDULES, Configurations

_GPIPE = SCHEDULES.index("gpipe")
_COMPARED = slice(1, 8)
"""the fields of `RankLoads` of which more means more memory"""


class RankLoads(NamedTuple):
    """What ranks have, in columns of [candidates, rows]; each a rank that may be the fullest of its row.

    Layers are counted by kind: dense, and with experts. `waiting` ones times the micro-batches that wait; `first` ones
    are those of the first stage, whose gradients come last.
    """

    rank: Floats
    dense: Floats
    experts: Floats
    embedding: Floats
    head: Floats
    waiting_dense: Floats
    waiting_experts: Floats
    waiting_embedding: Floats
    first_dense: Floats
    first_experts: Floats


class _Shape(NamedTuple):
    pp: int
    interleave: int
    microbatches: int
    """those that can wait at once"""


def rank_loads(layers: int, dense_layers: int, configurations: Configurations) -> RankLoads:
    """The candidates of each row; a row with fewer than others has its first one several times."""
    pp, interleave, waiting = configurations.pp, configurations.interleave, _countable(configurations)
    codes, first, inverse = np.unique(
        (pp * (interleave.max() + 1) + interleave) * (waiting.max() + 1) + waiting,
        return_index=True,
        return_inverse=True,
    )
    shapes = [_Shape(*map(int, shape)) for shape in np.stack([pp, interleave, waiting])[:, first].T]
    kinds = [_candidates(shape, layers, dense_layers, configurations.stages) for shape in shapes]
    most = max(map(len, kinds))
    table = np.empty((len(RankLoads._fields), most, len(codes)))
    for k, kind in enumerate(kinds):
        table[:, : len(kind), k] = kind.T
        table[:, len(kind) :, k] = kind[:1].T
    loads = RankLoads(*table[:, :, inverse])
    repeats = np.where(configurations.schedule == _GPIPE, configurations.microbatches, 1)
    return loads._replace(
        waiting_dense=loads.waiting_dense * repeats,
        waiting_experts=loads.waiting_experts * repeats,
        waiting_embedding=loads.waiting_embedding * repeats,
    )


def _countable(configurations: Configurations) -> Numbers:
    """Micro-batches up to which more of them can wait; those of "gpipe" all do, which is counted later."""
    pp, interleave = configurations.pp, configurations.interleave
    enough = np.where(interleave > 1, 4 * pp, pp)
    return np.where(configurations.schedule == _GPIPE, 0, np.minimum(configurations.microbatches, enough))


@lru_cache(maxsize=4096)
def _candidates(shape: _Shape, layers: int, dense_layers: int, stages: tuple[int, ...] | None) -> Floats:
    """[candidates, fields of RankLoads]."""
    sizes = np.array(stages if stages is not None else even_stages(layers, shape.pp * shape.interleave))
    dense = np.clip(dense_layers - (np.cumsum(sizes) - sizes), 0, sizes)
    of_rank = (shape.interleave, shape.pp)
    dense, experts = dense.reshape(of_rank).T, (sizes - dense).reshape(of_rank).T
    waiting = waiting_microbatches(*shape)
    waiting_dense, waiting_experts = ((waiting @ kind[:, :, None])[:, :, 0] for kind in (dense, experts))
    rank, at = np.indices(waiting_dense.shape)
    rows = np.stack(
        [
            *(rank, dense.sum(1)[rank], experts.sum(1)[rank], rank == 0, rank == shape.pp - 1),
            *(waiting_dense, waiting_experts, waiting[rank, at, 0] * (rank == 0), dense[rank, 0], experts[rank, 0]),
        ],
        axis=-1,
    )
    return _undominated(rows.reshape(-1, len(RankLoads._fields)).astype(np.float64))


def waiting_microbatches(pp: int, interleave: int, microbatches: int) -> Numbers:
    """Micro-batches of each stage of each rank that wait, at the times when most do: [ranks, times, interleave].

    0 `microbatches` is "gpipe" with one. Of an interleaved rank w + 1 forwards are ahead of backwards, w as the
    schedule has it. Of a round of pp * interleave forwards each stage in turn has pp, of backwards the last one begins.
    """
    if microbatches == 0:
        return np.ones((pp, 1, interleave), dtype=np.int64)
    rank = np.arange(pp)[:, None, None]
    if interleave == 1:
        return np.minimum(microbatches, pp - rank)
    ahead, total = 2 * (pp - rank - 1) + (interleave - 1) * pp, microbatches * interleave
    forwards = np.minimum(ahead + 1 + np.arange(pp * interleave)[:, None], total)
    backwards = np.maximum(forwards - ahead - 1, 0)
    stage = np.arange(interleave)
    return _of_stage(forwards, stage, pp, interleave) - _of_stage(backwards, interleave - 1 - stage, pp, interleave)


def _of_stage(calls: Numbers, turn: Numbers, pp: int, interleave: int) -> Numbers:
    """How many of the first `calls` are of the stage that is `turn`-th of a round."""
    rounds, more = np.divmod(calls, pp * interleave)
    return np.asarray(rounds * pp + np.clip(more - turn * pp, 0, pp))


def _undominated(rows: Floats) -> Floats:
    """Rows of which no other has as much or more in each compared field, the lowest rank of equal ones."""
    kept: list[Floats] = []
    while len(rows):
        largest = rows[rows[:, _COMPARED].sum(1).argmax()]
        kept.append(largest)
        rows = rows[(rows[:, _COMPARED] > largest[_COMPARED]).any(1)]
    return np.array(kept)
