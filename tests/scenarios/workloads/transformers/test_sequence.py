"""Which tokens ranks have, and what is refused where ranks cannot share."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.builder.builder import GraphBuilder
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.split import Split
from partita.scenarios.models.vit import VitModel
from partita.scenarios.workloads.transformers.forward import forward
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters
from partita.scenarios.workloads.transformers.sequence import order_of_tokens

GPT = GptModel(2, 8, 4, vocabulary=10)


def build(model: object, split: Split, sequence: int, devices: int | None = None) -> None:
    """Adds a model of two layers to a graph."""
    program = RankProgram(GraphBuilder(), Mesh(pp=split.pp, dp=split.dp, cp=split.cp, tp=split.tp))
    names = tuple(f"/device:CPU:{k}" for k in range(devices or split.pp))
    sizes = RankSizes(2, split.microbatch, sequence, names, fused=False)
    forward(RankNetwork(program, RankParameters(program, "float32"), split, sizes), model)


def test_a_ring_balances_causal_halves() -> None:
    """Rank r has chunks r and 2 cp - 1 - r; by heads ranks have one part each, in order."""
    assert order_of_tokens(8, 2, "ring").tolist() == [0, 1, 6, 7, 2, 3, 4, 5]
    assert order_of_tokens(12, 3, "ring").tolist() == [0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7]
    assert order_of_tokens(8, 2, "heads").tolist() == list(range(8))


def test_a_ring_names_sequences_that_it_can_cut() -> None:
    """The nearest multiples of 2 cp."""
    with pytest.raises(InvalidArgumentError, match=r"2 ranks cuts a sequence into 4 chunks.*choose 8 or 12"):
        order_of_tokens(10, 2, "ring")


@pytest.mark.parametrize(
    ("model", "split", "sequence", "says"),
    [
        (GPT, Split(cp=3), 8, "8 tokens of a sequence are not divisible by the 3 ranks of cp; choose 6 or 9"),
        (GPT, Split(tp=2, sequence_parallel=True), 5, "5 rows of a rank are not divisible.*choose 4 or 6"),
        (GPT, Split(tp=2, sequence_parallel=True, microbatch=2), 5, "the 5 tokens .* choose 4 or 6"),
        (GPT, Split(tp=3), 8, "4 heads cannot be shared out over tp=3; choose 2 or 4"),
        (LlamaModel(2, 24, 6, 12, 10, kv_heads=3), Split(tp=2), 8, "3 key-value heads .* tp=2; choose one of 1, 3, 6"),
        (GPT, Split(cp=8, cp_kind="heads"), 8, "4 heads of a rank cannot be exchanged by cp=8.*choose 4"),
    ],
)
def test_what_ranks_cannot_share_is_refused(model: object, split: Split, sequence: int, says: str) -> None:
    """With the nearest values that work."""
    with pytest.raises(InvalidArgumentError, match=says):
        build(model, split, sequence)


def test_a_ring_has_no_window_and_images_no_context_parallelism() -> None:
    """They say what to use in their place."""
    with pytest.raises(UnimplementedError, match=r'window of attention .3 of 8 tokens.; use cp_kind="heads"'):
        build(LlamaModel(2, 8, 4, 12, 10, window=3), Split(cp=2, cp_kind="ring"), 8)
    with pytest.raises(UnimplementedError, match="images have no sequence that cp=2 ranks could share; use cp=1"):
        build(VitModel(2, 8, 4, 12, image=12, patch=4), Split(cp=2), 10)


def test_every_stage_has_a_device_and_every_model_a_builder() -> None:
    """Others are refused."""
    with pytest.raises(InvalidArgumentError, match="pp=2 stages have 1 devices; give one for each"):
        build(GPT, Split(pp=2), 8, devices=1)
    with pytest.raises(InvalidArgumentError, match="str has no builder of transformers; use one of GptModel"):
        build("gpt", Split(), 8)
