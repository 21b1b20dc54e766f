"""Rules of layouts are those of splits; impossible ones are counted, and errors name the nearest that works."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, PartitaError
from partita.scenarios.models.split import Split
from partita.scenarios.models.stage_cut import even_stages
from partita.scenarios.planners.inference.candidates import BATCHES, Rules
from partita.scenarios.planners.inference.passages import ReplicaLayout
from partita.scenarios.planners.machine import Machine
from partita.scenarios.workloads.model_building import build_model
from tests.scenarios.planners.inference.served_models import MODELS, dgx

CLUSTER = dgx()
MACHINE = Machine.of(CLUSTER)
NUMBERS = st.integers(1, 9)


@given(name=st.sampled_from([*MODELS]), tp=NUMBERS, pp=st.integers(1, 5), ep=NUMBERS, batch=NUMBERS)
def test_a_row_is_possible_where_its_graph_is(name: str, tp: int, pp: int, ep: int, batch: int) -> None:
    """A layout with a batch breaks no rule exactly where the graph of its token can be built."""
    model = MODELS[name](4)
    reason = Rules(model, MACHINE, prompt=840).broken(ReplicaLayout(tp, pp, ep), batch)
    try:
        stages = even_stages(4, pp)
        split = Split(tp=tp, pp=pp, dp=ep, ep=ep, microbatch=batch, stages=stages, precision="bfloat16")
        build_model(model, split, CLUSTER, inference="decode", context=64, representatives=True)
    except PartitaError:
        assert reason is not None
    else:
        assert reason is None or "prompt" in reason


@given(name=st.sampled_from([*MODELS]), fixed=st.dictionaries(st.sampled_from(("tp", "pp", "ep")), st.integers(1, 4)))
def test_each_row_is_counted_once(name: str, fixed: dict[str, int]) -> None:
    """Possible and impossible rows are all layouts times all batches; what is fixed is so in all rows."""
    try:
        found = Rules(MODELS[name](4), MACHINE, prompt=128).candidates(fixed, None)
    except InvalidArgumentError:
        return
    assert len(found.rows) == len(set(found.rows))
    assert (len(found.rows) + sum(found.impossible.values())) % len(BATCHES) == 0
    for layout, _ in found.rows:
        assert all(getattr(layout, axis) == value for axis, value in fixed.items())
        assert layout.devices <= 8


@pytest.mark.parametrize(
    ("fixed", "batches", "text"),
    [
        ({"tp": 3}, None, "tp=3: tp does not divide heads; give tp=2 or 4"),
        ({"ep": 2}, None, "ep=2: the model has no experts for ep; give ep=1"),
        ({"pp": 16}, None, "pp=16: tp * pp * ep is more than the devices; give pp=8"),
        ({"dp": 2}, None, "inference has no axis 'dp'"),
        ({"tp": 0}, None, "tp=0 is no positive number"),
        ({}, [0], "batch=0 is no positive number"),
        ({}, [], "batch has no values"),
    ],
)
def test_errors_name_what_works(fixed: dict[str, int], batches: list[int] | None, text: str) -> None:
    """Values that no layout has are refused, with the nearest that one has."""
    with pytest.raises(InvalidArgumentError) as caught:
        Rules(MODELS["llama"](32), MACHINE, prompt=128).candidates(fixed, batches)
    assert text in str(caught.value)
