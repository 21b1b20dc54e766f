"""How many micro-batches wait, compared with the schedules played; which rank is the fullest."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.parallel.pipelines.schedules import PipelineShape, find_schedule
from partita.scenarios import Split
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.planners.memory.pipeline import waiting_microbatches
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.planners.memory.examples import memory_of

SHAPES = [
    PipelineShape(pp, interleave, microbatches)
    for pp in (1, 2, 3, 4, 8)
    for interleave in (1, 2, 3)
    for microbatches in (1, 2, 3, 4, 6, 8, 16, 24)
    if interleave == 1 or (pp > 1 and microbatches % pp == 0)
]


def test_shapes_are_many() -> None:
    """A condition that leaves out too much is noticed."""
    assert len(SHAPES) == 72


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_waits_is_what_the_schedule_leaves(shape: PipelineShape) -> None:
    """Of each rank: the mixes of stages at all times when most micro-batches wait."""
    calls = find_schedule("interleaved" if shape.interleave > 1 else "1f1b").calls(shape)
    waiting = waiting_microbatches(*shape)
    for rank, ordered in enumerate(calls):
        counts = np.zeros(shape.interleave, dtype=int)
        states = []
        for call in ordered:
            counts[call.stage // shape.devices] += 1 if call.is_forward else -1
            states.append(tuple(counts.tolist()))
        most = max(map(sum, states))
        assert {tuple(mix) for mix in waiting[rank].tolist()} == {state for state in states if sum(state) == most}


def test_an_interleaved_first_rank_keeps_the_published_part_more() -> None:
    """1 + (pp - 1) / (pp * interleave) of 1f1b's (Korthikanti et al. 2022, section 4.2.3)."""
    for pp, interleave in ((8, 3), (4, 2), (16, 2)):
        waiting = waiting_microbatches(pp, interleave, 8 * pp)[0].sum(axis=1)
        assert (waiting / interleave == pp * (1 + (pp - 1) / (pp * interleave))).all()


MODEL = LlamaModel(layers=12, hidden=1024, heads=16, intermediate=2816, vocabulary=32000)


def test_the_fullest_rank_is_named() -> None:
    """The first with equal stages, whose micro-batches wait longest; the one that was given more layers else."""
    step = PlannedStep(MODEL, 2048)
    assert memory_of(step, Split(pp=4, microbatches=8)).stage == [0]
    assert memory_of(step, Split(pp=4, microbatches=8, stages=(1, 1, 9, 1))).stage == [2]
    assert memory_of(step, Split(pp=4, microbatches=8, stages=(1, 1, 1, 9))).stage == [3]


def test_a_large_vocabulary_makes_the_last_rank_the_fullest() -> None:
    """Logits, and a buffer for the gradient of the head."""
    wide = LlamaModel(layers=12, hidden=1024, heads=16, intermediate=2816, vocabulary=1_000_000)
    assert memory_of(PlannedStep(wide, 2048), Split(pp=4, microbatches=8)).stage == [3]


def test_layers_that_ranks_cannot_share_equally_are_spread() -> None:
    """As a split suggests it where they do not divide: more in the middle."""
    step = PlannedStep(LlamaModel(layers=10, hidden=1024, heads=16, intermediate=2816, vocabulary=32000), 2048)
    spread, given = (memory_of(step, Split(pp=4, microbatches=8, stages=stages)) for stages in (None, (2, 3, 3, 2)))
    assert (spread.allocated, spread.stage) == (given.allocated, given.stage)
    assert spread.allocated != memory_of(step, Split(pp=4, microbatches=8, stages=(3, 2, 2, 3))).allocated
