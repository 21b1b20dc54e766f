"""Laws of planned memory, over drawn models, steps and splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from attrs import evolve
from hypothesis import given, strategies as st

from partita.scenarios.planners.estimates import MEMORY_CATEGORIES
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.planners.memory.examples import EXPERTS, memory_of, splits, steps

STATES = ("parameters", "gradients", "optimizer")


@given(steps(), st.data())
def test_categories_add_up_to_what_is_reserved(step: PlannedStep, data: st.DataObject) -> None:
    """All but fragmentation is allocated, and lies between its bounds."""
    memory = memory_of(step, data.draw(splits(step)))
    assert set(memory.by_category) == set(MEMORY_CATEGORIES)
    assert all((column >= 0).all() for column in memory.by_category.values())
    assert sum(memory.by_category.values()) == memory.reserved
    assert memory.reserved - memory.by_category["fragmentation"] == memory.allocated
    assert memory.low <= memory.allocated <= memory.high


@given(steps(), st.data())
def test_a_row_does_not_depend_on_others(step: PlannedStep, data: st.DataObject) -> None:
    """Columns of many splits are those of each alone."""
    drawn = [data.draw(splits(step, precision="bfloat16")) for _ in range(4)]
    together = memory_of(step, *drawn)
    for row, split in enumerate(drawn):
        alone = memory_of(step, split)
        assert alone.allocated[0] == together.allocated[row]
        assert alone.stage[0] == together.stage[row]
        assert alone.high[0] == together.high[row]


@given(steps(), st.data())
def test_more_tensor_parallelism_never_needs_more_parameters(step: PlannedStep, data: st.DataObject) -> None:
    """Nor gradients, nor the optimizer's; with a pipeline another rank may become the fullest."""
    split = data.draw(splits(step, tp=1, pp=1))
    memory = memory_of(step, *(replace(split, tp=tp) for tp in (1, 2, 4)))
    assert all((np.diff(memory.by_category[name]) <= 0).all() for name in STATES)


@given(steps(), st.data())
def test_sharing_out_never_needs_more_states(step: PlannedStep, data: st.DataObject) -> None:
    """Each stage of zero shares out more; and stage 1, which gathers nothing, never needs more in all."""
    split = data.draw(splits(step, zero=0, pp=1))
    memory = memory_of(step, *(replace(split, zero=zero) for zero in range(4)))
    assert (np.diff(sum(memory.by_category[name] for name in STATES)) <= 0).all()
    assert memory.allocated[1] <= memory.allocated[0]


@given(steps(), st.data())
def test_more_recomputation_never_needs_more(step: PlannedStep, data: st.DataObject) -> None:
    """What is computed again is no more than what was not kept."""
    split = data.draw(splits(step))
    memory = memory_of(step, *(replace(split, recompute=kind) for kind in ("none", "selective", "full")))
    assert (np.diff(memory.allocated) <= 0).all()


@given(steps(), st.data())
def test_gpipe_keeps_the_most(step: PlannedStep, data: st.DataObject) -> None:
    """It keeps all micro-batches; how many of them 1f1b keeps does not depend on their number."""
    split = data.draw(splits(step, interleaves=False))
    more = replace(split, microbatches=2 * split.microbatches)
    memory = memory_of(step, split, more, replace(split, schedule="gpipe"), replace(more, schedule="gpipe"))
    eager, eager_more, gpipe, gpipe_more = memory.allocated
    assert eager == eager_more <= gpipe <= gpipe_more


@given(steps(), st.data())
def test_larger_micro_batches_and_longer_sequences_need_more(step: PlannedStep, data: st.DataObject) -> None:
    """Activations grow with the tokens of a micro-batch; casts of 16-bit gradients may need more than all of them."""
    split = data.draw(splits(step))
    memory = memory_of(step, split, replace(split, microbatch=2 * split.microbatch))
    longer = memory_of(evolve(step, sequence_length=2 * step.sequence_length), split)
    assert memory.allocated[0] <= memory.allocated[1]
    assert memory.allocated[0] <= longer.allocated[0]
    is_strict = step.gradient_bytes == 4
    assert not is_strict or memory.allocated[0] < min(memory.allocated[1], longer.allocated[0])


@given(steps(), st.data())
def test_a_forward_pass_needs_less_than_training(step: PlannedStep, data: st.DataObject) -> None:
    """No gradients, no optimizer, and nothing waits."""
    split = data.draw(splits(step))
    training, forward = (memory_of(evolve(step, trains=trains), split) for trains in (True, False))
    assert forward.allocated < training.allocated
    assert all(forward.by_category[name] == 0 for name in ("gradients", "optimizer", "activations"))


@given(steps(EXPERTS), st.data())
def test_a_busier_rank_keeps_more_rows(step: PlannedStep, data: st.DataObject) -> None:
    """Where experts are on several ranks, the busiest one's rows count."""
    split = data.draw(splits(step, dp=8, ep=4, pp=1, recompute="none"))
    step = evolve(step, gradient_bytes=4)
    assert memory_of(step, split).allocated < memory_of(evolve(step, imbalance=2.0), split).allocated
