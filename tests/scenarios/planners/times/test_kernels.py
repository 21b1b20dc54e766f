"""Times of the kernels of layers: those of each product asked alone, and of fewer bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.devices.timing.costs.layer_costs import attention_cost, grouped_product_cost
from partita.devices.timing.costs.product_costs import products_answer
from partita.devices.timing.fits.products import Products
from partita.scenarios import Split
from partita.scenarios.planners.times.kernels import (
    BACKWARD,
    CORE,
    FORWARD,
    LAYOUTS,
    PHASES,
    STAGES,
    TAIL,
    LayerTimes,
    LayerWork,
    layer_times,
)
from tests.scenarios.planners.times.drawn import STEPS, machine, same, times_of

sides = st.sampled_from([1024, 1536, 4096, 5120, 8192])
shapes = st.tuples(sides, sides, sides, st.sampled_from([1, 8]))
devices = st.sampled_from(["A100-80GB:8", "H100-SXM:8", "B200-SXM:8"])


def times(work: LayerWork, on: str) -> LayerTimes:
    [said] = layer_times([work], machine(on), "bfloat16")
    return said


@settings(max_examples=15)
@given(devices, st.lists(shapes, min_size=1, max_size=4))
def test_products_take_what_each_of_three_takes_alone(on: str, sizes: list[tuple[int, int, int, int]]) -> None:
    """Forward, and backward the gradients of the input and of the weights; the same shapes twice are twice as long."""
    m, n, k, batch = (np.array(column) for column in zip(*sizes, strict=True))
    work = LayerWork(len(sizes))
    work.product(m, n, k, batch=batch, also=TAIL)
    work.product(m, n, k, batch=batch, category="attention")
    alone = [
        products_answer(
            machine(on).spec, Products(*shape, batch, (layout,) * len(sizes)), machine(on).calibration
        ).time_ns
        for shape, layout in zip(((m, n, k), (m, k, n), (n, k, m)), LAYOUTS, strict=True)
    ]
    said = times(work, on)
    for of in (said.products_ns, said.attention_ns):
        assert same(of[FORWARD], alone[0])
        assert same(of[BACKWARD], alone[1] + alone[2])
    assert same(said.products_ns[TAIL], said.products_ns[FORWARD])
    assert not said.attention_ns[TAIL].any()
    assert {phase: int(column[0]) for phase, column in said.kernels.items()} == {
        FORWARD: 2,
        BACKWARD: 4,
        CORE: 0,
        TAIL: 1,
    }


@pytest.mark.parametrize("on", ["B200-SXM:8", "H100-SXM:8"])
def test_attention_and_experts_take_what_they_take_alone(on: str) -> None:
    sizes: Any = {"batch": 2, "seq_len": 4096, "heads": 32, "kv_heads": 8, "qk_head_dim": 128, "v_head_dim": 128}
    work = LayerWork(2)
    work.attention(np.array([1.0, 3.0]), **sizes)
    work.grouped(np.array([8, 8]), np.array([1024, 2048]), 4096, 2048, 4)
    said, spec = times(work, on), machine(on).spec
    for phase, direction in ((FORWARD, "fwd"), (BACKWARD, "bwd"), (CORE, "fwd")):
        once = attention_cost(spec, direction=direction, **sizes).time_ns
        assert said.attention_ns[phase] == pytest.approx([once, 3 * once], rel=1e-4)
    swapped = {"fwd": (4096, 2048), "bwd_grad_act": (2048, 4096), "bwd_grad_w": (4096, 2048)}
    for row, m in enumerate((1024, 2048)):
        alone = {
            stage: grouped_product_cost(spec, groups=8, m=m, n=n, k=k, stage=stage).time_ns
            for stage, (n, k) in swapped.items()
        }
        assert said.products_ns[FORWARD][row] == pytest.approx(alone[STAGES[0]], rel=1e-4)
        assert said.products_ns[BACKWARD][row] == pytest.approx(alone[STAGES[1]] + alone[STAGES[2]], rel=1e-4)


@settings(max_examples=10)
@given(devices, st.lists(shapes, min_size=2, max_size=2), st.lists(shapes, min_size=3, max_size=3))
def test_layers_asked_together_take_what_they_take_alone(
    on: str, one: list[tuple[int, int, int, int]], other: list[tuple[int, int, int, int]]
) -> None:
    works = []
    for sizes in (one, other):
        m, n, k, batch = (np.array(column) for column in zip(*sizes, strict=True))
        works.append(LayerWork(len(sizes)))
        works[-1].product(m, n, k, batch=batch)
        works[-1].product(k, n, m, also=CORE)
    together = layer_times(works, machine(on), "bfloat16")
    for work, said in zip(works, together, strict=True):
        alone = times(work, on)
        assert all(same(said.products_ns[phase], alone.products_ns[phase]) for phase in PHASES)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9), st.sampled_from(["", CORE, TAIL])), max_size=6))
def test_what_streams_adds_up(streams: list[tuple[float, float, str]]) -> None:
    work = LayerWork(1)
    for forward, backward, also in streams:
        work.stream(forward, backward, (1, 2), also=also)
    assert work.bytes[FORWARD][0] == pytest.approx(sum(it[0] for it in streams))
    assert work.bytes[BACKWARD][0] == pytest.approx(sum(it[1] for it in streams))
    for part in (CORE, TAIL):
        assert work.bytes[part][0] == pytest.approx(sum(it[0] for it in streams if it[2] == part))
        assert work.kernels[part][0] == sum(it[2] == part for it in streams)
    assert (work.kernels[FORWARD][0], work.kernels[BACKWARD][0]) == (len(streams), 2 * len(streams))


@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_products_of_fewer_bits_are_faster(name: str) -> None:
    """Attention stays in 16 bits with fp8 products."""
    split = Split(tp=2, dp=4, microbatch=4, microbatches=2)
    fp8, bf16, fp16, fp32 = (
        times_of(STEPS[name], machine("H100-SXM:8"), replace(split, precision=of)).by_category
        for of in ("fp8", "bfloat16", "float16", "float32")
    )
    assert fp8["products"] < 0.8 * bf16["products"]
    assert fp32["products"] > 1.5 * bf16["products"]
    assert fp8["attention"] == bf16["attention"]
    assert fp16 == bf16
