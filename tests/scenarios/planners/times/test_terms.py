"""Terms of steps: joined they are what each was, transfers of stages, and gradients that are added up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.graph.arrays import Floats
from partita.scenarios import Split
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.machine import Machine
from partita.scenarios.planners.numbers import PlanNumbers, training_numbers
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.times.assembly import assembled, exchange_ns
from partita.scenarios.planners.times.kernels import BACKWARD, FORWARD
from partita.scenarios.planners.times.terms import StepTerms, joined, step_terms
from tests.scenarios.planners.times.drawn import LENGTH, STEPS, all_with, few, machine, same, steps, tables

plain = PlanNumbers(network=1.0)


def terms_of(step: PlannedStep, *rows: Split, on: Machine | None = None) -> StepTerms:
    return step_terms(step, on or machine(), Configurations.of(rows))


def transfer_ns(step: PlannedStep, *rows: Split, on: Machine | None = None) -> Floats:
    return exchange_ns(terms_of(step, *rows, on=on).transfer, plain)


@few
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), tables(), st.booleans()), min_size=2, max_size=4))
def test_joined_terms_take_what_each_takes(several: list[tuple[str, list[Split], bool]]) -> None:
    """Models with and without experts, pipelines of few and many kinds of ranks, steps with and without training."""
    numbers = training_numbers().common
    terms = [terms_of(evolve(STEPS[name], trains=trains), *rows) for name, rows, trains in several]
    alone, together = [assembled(each, numbers) for each in terms], assembled(joined(terms), numbers)
    assert same(together.step_ns, np.concatenate([each.step_ns for each in alone]))
    for name, column in together.by_category.items():
        assert same(column, np.concatenate([each.by_category[name] for each in alone])), name


@few
@given(steps, tables(pp=4), st.floats(0.1, 20))
def test_gradients_of_micro_batches_are_added_up(step: PlannedStep, rows: list[Split], more: float) -> None:
    """So many bytes a weight of the rank, backward alone."""
    layers = [terms_of(evolve(step, accumulation_bytes=of), *rows).layers for of in (0.0, more)]
    kind = "dense"
    assert same(layers[0][kind].bytes[FORWARD], layers[1][kind].bytes[FORWARD])
    tp = np.array([row.tp for row in rows])
    added = (layers[1][kind].bytes[BACKWARD] - layers[0][kind].bytes[BACKWARD]) * tp / more
    least = 2 * 4096 * 4096 + 2 * 4096 * 12288  # of a layer's weights, without small ones
    assert (added > least).all()
    assert (added < 4 * least).all()


@few
@given(steps, tables(pp=2))
def test_rows_that_are_shared_out_are_sent_once(step: PlannedStep, rows: list[Split]) -> None:
    """Each tp rank sends its own with sequence parallelism; else all, or a part that the next stage gathers."""
    rows = all_with(rows, tp=4, cp=1)
    all_rows, own = (
        transfer_ns(evolve(step, parts_transfers=False), *all_with(rows, sequence_parallel=of)) for of in (False, True)
    )
    parted = transfer_ns(evolve(step, parts_transfers=True), *all_with(rows, sequence_parallel=False))
    assert (own < all_rows).all()
    assert (own < parted).all()
    assert (parted < all_rows)[np.array([row.tp * row.dp >= 8 for row in rows])].all()


def test_a_transfer_is_inside_a_host_where_all_stages_are() -> None:
    """Between hosts at the rate of a port, at most."""
    step = STEPS["llama"]
    inside, over = (
        transfer_ns(step, Split(tp=4, pp=2, dp=dp, precision="bfloat16"), on=machine("A100-80GB:32"))[0]
        for dp in (1, 4)
    )
    size = LENGTH * 4096 * 2
    assert over > size / machine().port_bytes_per_s * 1e9
    assert inside < over / 4
    assert not transfer_ns(step, Split(tp=8, precision="bfloat16")).any()


def test_precision_and_overlap_are_of_all_rows() -> None:
    rows = [Split(tp=2, dp=dp, overlap=("tp", "dp"), precision="bfloat16") for dp in (1, 2)]
    runs = terms_of(STEPS["llama"], *rows).runs
    assert {axis: of.tolist() for axis, of in runs.hides.items()} == {
        "tp": [True, True],
        "dp": [True, True],
        "pp": [False, False],
        "ep": [False, False],
        "cp": [False, False],
    }


@pytest.mark.parametrize("stages", [(5, 3), (3, 5), (1, 7)])
def test_layers_of_stages_may_be_given(stages: Any) -> None:
    """The slowest stage decides: a layer less beside the head, which takes as long as two, is faster."""
    split = Split(pp=2, dp=4, microbatches=32, precision="bfloat16")
    numbers = training_numbers().of("A100-80GB")
    equal, given = (
        assembled(terms_of(STEPS["llama"], *all_with([split], stages=of)), numbers) for of in (None, stages)
    )
    if stages == (5, 3):  # beside the head, which takes as long as some layers
        assert given.step_ns < equal.step_ns
    else:
        assert given.step_ns > equal.step_ns
