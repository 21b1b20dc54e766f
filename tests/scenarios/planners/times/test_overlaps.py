"""What computation hides of communication."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.scenarios import Split
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.planners.times.drawn import STEPS, all_with, few, machine, same, steps, tables, times_of

axes = st.sets(st.sampled_from(["tp", "dp", "ep", "cp"]))


@few
@given(steps, tables(), axes, st.sampled_from(["tp", "dp", "ep", "cp"]))
def test_overlap_makes_no_step_slower(step: PlannedStep, rows: list[Split], overlap: set[str], more: str) -> None:
    """What is hidden shortens its own category, and of others at most the bubble."""
    shown, hidden = (
        times_of(step, machine(), *all_with(rows, overlap=tuple(of))) for of in (overlap - {more}, overlap | {more})
    )
    assert (hidden.step_ns <= shown.step_ns * (1 + 1e-12)).all()
    assert (hidden.by_category[more] <= shown.by_category[more] * (1 + 1e-12)).all()
    for name in ("products", "attention", "memory_bound", "optimizer"):
        assert same(hidden.by_category[name], shown.by_category[name]), name


@few
@given(steps, tables(dp=4))
def test_gradients_hide_but_for_those_of_the_first_layer(step: PlannedStep, rows: list[Split]) -> None:
    shown, hidden = (
        times_of(step, machine(), *all_with(rows, overlap=of, zero=0, zero_group=None)).by_category["dp"]
        for of in ((), ("dp",))
    )
    assert (hidden < shown).all()
    assert (hidden > shown / (step.model.layers + 3)).all()


@pytest.mark.parametrize(
    ("given", "overlap"), [({"tp": 8}, "tp"), ({"cp": 2}, "cp"), ({"dp": 8, "ep": 8}, "ep"), ({"dp": 8}, "dp")]
)
def test_every_axis_hides_something(given: dict[str, int], overlap: str) -> None:
    """Of 16,384 rows, which go through products in two chunks."""
    split = Split(**given, microbatch=4 * given.get("cp", 1), precision="bfloat16")  # type: ignore[arg-type]  # numbers by name
    shown, hidden = (times_of(STEPS["moe"], machine(), *all_with([split], overlap=of)) for of in ((), (overlap,)))
    assert 0 <= hidden.by_category[overlap] < shown.by_category[overlap]


def test_few_rows_are_not_cut_into_chunks() -> None:
    """4096 rows are one chunk: nothing of tp hides."""
    split = Split(tp=8, precision="bfloat16")
    shown, hidden = (times_of(STEPS["llama"], machine(), *all_with([split], overlap=of)) for of in ((), ("tp",)))
    assert hidden.step_ns == shown.step_ns


def test_transfers_of_stages_hide_but_for_those_of_the_ends() -> None:
    """However many micro-batches follow each other."""
    splits = [Split(pp=4, dp=2, microbatches=count, precision="bfloat16") for count in (8, 16)]
    shown, hidden = (
        times_of(STEPS["llama"], machine(), *all_with(splits, overlap=of)).by_category["pp"] for of in ((), ("pp",))
    )
    assert shown[0] < shown[1]
    assert 0 < hidden[0] == hidden[1] < shown[0]
