"""Planned memory beside what others published: formulas of a paper, peaks that were measured."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from partita.scenarios import Split
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.models.families import ROWS
from tests.scenarios.planners.memory.examples import GIB, MODELS, memory_of


class Megatron(NamedTuple):
    """A model of Korthikanti et al. 2022, table 3, with tp 8, and the activations of figure 1 by its equations."""

    layers: int
    hidden: int
    heads: int
    pp: int
    interleave: int
    microbatch: int
    microbatches: int


PAPERS = {
    "22B": Megatron(48, 6144, 64, 1, 1, 4, 1),
    "175B": Megatron(96, 12288, 96, 8, 3, 1, 64),
    "530B": Megatron(105, 20480, 128, 35, 3, 1, 280),
    "1T": Megatron(128, 25600, 160, 64, 1, 1, 512),
}


def _planned(paper: Megatron, **fields: Any) -> Any:  # Any: fields of a split; columns
    model = GptModel(paper.layers, paper.hidden, paper.heads, vocabulary=51200, positions=2048)
    step = PlannedStep(model, 2048, fused_attention=False, fused_loss=False, dropout=True)
    split = Split(
        tp=8,
        pp=paper.pp,
        interleave=paper.interleave,
        microbatch=paper.microbatch,
        microbatches=paper.microbatches,
        precision="float16",
        **fields,
    )
    return memory_of(step, split).by_category


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_activations_are_those_of_the_papers_equations(paper: Megatron) -> None:
    """Equation 2 without recomputation, 4 with sequence parallelism and the attention core computed again."""
    sbh = 2048 * paper.microbatch * paper.hidden
    scores = 5 * paper.heads * 2048 / paper.hidden
    more = 1 + (paper.pp - 1) / (paper.pp * paper.interleave) if paper.interleave > 1 else 1
    for fields, width in (
        ({}, 10 + (24 + scores) / 8),
        ({"sequence_parallel": True}, (34 + scores) / 8),
        ({"sequence_parallel": True, "recompute": "selective"}, 34 / 8),
        ({"recompute": "full"}, 2),
    ):
        planned = _planned(paper, **fields)["activations"][0]
        ends = 5 * sbh if paper.pp == 1 else sbh * paper.pp * 2
        assert sbh * width * paper.layers * more <= planned <= 1.001 * sbh * width * paper.layers * more + ends


def test_activations_are_the_papers_figures() -> None:
    """66.8 GiB of the 175 B model without recomputation, 12.4 with sequence parallelism and selective recomputation."""
    assert _planned(PAPERS["175B"])["activations"] / GIB == pytest.approx(66.84, rel=0.01)
    least = _planned(PAPERS["175B"], sequence_parallel=True, recompute="selective")["activations"]
    assert least / GIB == pytest.approx(12.35, rel=0.01)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_states_are_counted_to_the_byte(model: Any) -> None:
    """On one device: 2 bytes of each parameter, 4 of its gradient, 12 of its master and moments."""
    states = memory_of(PlannedStep(model, 1024), Split(precision="bfloat16")).by_category
    assert [states[name][0] / model.parameters for name in ("parameters", "gradients", "optimizer")] == [2, 4, 12]
    wide = memory_of(PlannedStep(model, 1024), Split(precision="float32")).by_category
    assert [wide[name][0] / model.parameters for name in ("parameters", "gradients", "optimizer")] == [4, 4, 8]


class Peak(NamedTuple):
    """A peak of torch's max_memory_allocated over ranks, on 8 B200 with Megatron-LM 0.14, in GiB.

    MooreThreads/SimuMax 4dcaae5, Apache-2.0: distributed optimizer, sequence parallelism with tp, no recomputation,
    context parallelism by an exchange of heads, an untied head.
    """

    model: str
    layers: int
    length: int
    split: dict[str, Any]  # Any: fields of a split
    gib: float


PEAKS = [
    Peak("llama3_70b", 12, 4096, {"tp": 2, "dp": 4}, 60.68),
    Peak("llama3_70b", 12, 4096, {"pp": 2, "dp": 4}, 66.55),
    Peak("llama3_405b", 4, 32768, {"cp": 8}, 139.22),
    Peak("deepseekv2", 4, 4096, {"ep": 8, "dp": 8}, 45.63),
    Peak("deepseekv3", 4, 4096, {"ep": 4, "pp": 2, "dp": 4}, 114.0),
]


@pytest.mark.parametrize("peak", PEAKS, ids=lambda peak: f"{peak.model}-{peak.split}")
def test_peaks_are_those_measured(peak: Peak) -> None:
    """To 0.3 %, and within the bounds."""
    model: LlamaModel | MoeModel
    if peak.model.startswith("llama"):
        model = LlamaModel.from_row(ROWS, peak.model, layers=peak.layers)
    else:
        model = MoeModel.from_row(ROWS, peak.model, layers=peak.layers, dense_layers=1)
    split = Split(
        **peak.split,
        microbatches=8,
        zero=1,
        sequence_parallel="tp" in peak.split,
        cp_kind="heads",
        precision="bfloat16",
    )
    memory = memory_of(PlannedStep(model, peak.length), split)
    assert memory.allocated / GIB == pytest.approx(peak.gib, rel=0.003)
    assert memory.low <= np.float64(peak.gib * GIB) <= memory.high
