"""The closed form of a step and the simulation of the graph that is built for it take as long."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from partita.errors import PartitaError
from partita.scenarios.models.split import Precision
from partita.scenarios.planners.inference.passages import ReplicaLayout
from partita.scenarios.planners.inference.rank import Phase
from tests.scenarios.planners.inference.served_models import MODELS, dgx, llama_8b, passages_of, simulated

H100 = dgx()
LAYOUTS = st.builds(
    ReplicaLayout, tp=st.sampled_from((1, 2, 4)), pp=st.sampled_from((1, 1, 2, 3)), ep=st.sampled_from((1, 1, 2))
)
DECODES = st.builds(
    Phase,
    kind=st.just("decode"),
    sequences=st.sampled_from((1, 8, 64)),
    length=st.just(1),
    context=st.sampled_from((512, 2048)),
)
PREFILLS = st.builds(
    Phase,
    kind=st.just("prefill"),
    sequences=st.sampled_from((1, 2)),
    length=st.sampled_from((256, 1024)),
    context=st.just(2048),
)
PRECISIONS: tuple[Precision, ...] = ("bfloat16", "fp8", "float32")


@settings(max_examples=12, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(name=st.sampled_from([*MODELS]), layout=LAYOUTS, phase=DECODES | PREFILLS, precision=st.sampled_from(PRECISIONS))
def test_a_step_takes_as_long_as_its_graph(
    name: str, layout: ReplicaLayout, phase: Phase, precision: Precision
) -> None:
    """In all families, layouts and types a step in closed form is within 6 % of the simulated one."""
    model = MODELS[name](4)
    try:
        timeline = simulated(model, H100, layout, phase, precision)
    except PartitaError:
        assume(False)
        raise
    closed = passages_of(model, H100, precision)
    closed.learn([(layout, phase)])
    found = closed.passage(layout, phase).total
    assert found.time_ns == pytest.approx(timeline.makespan_ns, rel=0.06)
    low_ns, high_ns = timeline.interval_ns()
    assert found.low_ns == pytest.approx(low_ns, rel=0.12)
    assert found.high_ns == pytest.approx(high_ns, rel=0.12)


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("batch", [1, 64])
def test_llama_8b_decodes_as_simulated(batch: int, tp: int) -> None:
    """Llama-3 8B on H100s, batch 1 to 64: the closed form is within 1 % of the simulation."""
    layout, phase = ReplicaLayout(tp, 1, 1), Phase("decode", batch, 1, 2048)
    closed = passages_of(llama_8b(), H100)
    closed.learn([(layout, phase)])
    makespan_ns = simulated(llama_8b(), H100, layout, phase).makespan_ns
    assert closed.passage(layout, phase).total.time_ns == pytest.approx(makespan_ns, rel=0.01)


def test_experts_over_hosts_decode_as_simulated() -> None:
    """Rows that go to experts of another host take as long as simulated, within 5 %."""
    cluster, layout, phase = dgx(hosts=2), ReplicaLayout(1, 1, 16), Phase("decode", 16, 1, 1024)
    model = MODELS["deepseek"](4)
    closed = passages_of(model, cluster)
    closed.learn([(layout, phase)])
    makespan_ns = simulated(model, cluster, layout, phase).makespan_ns
    assert closed.passage(layout, phase).total.time_ns == pytest.approx(makespan_ns, rel=0.05)


@settings(max_examples=25)
@given(batch=st.integers(1, 200), more=st.integers(1, 200))
def test_more_sequences_take_no_less(batch: int, more: int) -> None:
    """A step of more sequences moves more bytes, and takes at least as long but for how well products fill the GPU."""
    layout = ReplicaLayout(1, 1, 1)
    few, many = (Phase("decode", count, 1, 1024) for count in (batch, batch + more))
    closed = passages_of(llama_8b(2), H100)
    closed.learn([(layout, few), (layout, many)])
    assert closed.passage(layout, many).total.time_ns >= 0.9 * closed.passage(layout, few).total.time_ns


@settings(max_examples=12)
@given(pp=st.integers(1, 8), batch=st.sampled_from((1, 8)))
def test_stages_add_up(pp: int, batch: int) -> None:
    """A pipeline takes as long as one rank and the transfers between its stages, but for launches that go on."""
    model, phase = llama_8b(8), Phase("decode", batch, 1, 1024)
    closed, one, layout = passages_of(model, H100), ReplicaLayout(1, 1, 1), ReplicaLayout(1, pp, 1)
    closed.learn([(one, phase), (layout, phase)])
    alone, parted = (closed.passage(each, phase) for each in (one, layout))
    assert parted.total.time_ns == pytest.approx(alone.total.time_ns, abs=12_000 * pp)
    assert parted.slowest.time_ns <= parted.total.time_ns <= pp * parted.slowest.time_ns + 12_000 * pp
