"""Tokens that are decoded one by one with a cache have the logits of the whole sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph import Graph
from partita.graph.builder.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.parallel.mesh.marks import REDUCED_OVER
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import prefix_of, write_out
from partita.scenarios.models.bert import BertModel
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import LatentAttention, MoeModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.transformers.forward import forward
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters

BATCH, LENGTH, VOCABULARY = 2, 6, 10
MODELS: dict[str, Any] = {  # Any: models of several families
    "gpt": GptModel(2, 8, 4, vocabulary=VOCABULARY, positions=8, pad_vocabulary=1),
    "llama": LlamaModel(2, 8, 4, 12, VOCABULARY, kv_heads=2, qkv_bias=True, pad_vocabulary=1),
    "window": LlamaModel(2, 8, 4, 12, VOCABULARY, kv_heads=1, window=3, tied=True, pad_vocabulary=1),
    "latent": MoeModel(
        *(2, 8, 4, 12, VOCABULARY),
        experts=4,
        topk=2,
        expert_intermediate=6,
        dense_layers=1,
        pad_vocabulary=1,
        latent=LatentAttention(kv_rank=6, q_rank=5, nope_size=4, rope_size=2, value_size=3),
    ),
    "moe": MoeModel(2, 8, 4, 12, VOCABULARY, kv_heads=2, experts=4, topk=2, expert_intermediate=6, pad_vocabulary=1),
}
CASES: list[tuple[str, dict[str, Any]]] = [  # Any: fields of a split
    ("gpt", {}),
    ("gpt", {"tp": 2, "pp": 2}),
    ("llama", {"tp": 2}),
    ("llama", {"tp": 4, "sequence_parallel": True}),
    ("window", {"tp": 2}),
    ("moe", {}),
    ("latent", {}),
    ("latent", {"tp": 2, "pp": 2}),
    ("latent", {"tp": 4}),
]


class Inference:
    """A model on the ranks of a split, in float64; the graph, the logits, and what is run beside them."""

    def __init__(self, model: Any, split: Split, length: int, cache: int, *, fused: bool = True) -> None:
        # Any: the model of a family
        self.mesh = Mesh(pp=split.pp, dp=split.dp, cp=split.cp, tp=split.tp)
        devices = [f"/device:CPU:{k}" for k in range(self.mesh.devices)]
        b = GraphBuilder()
        program = RankProgram(b, self.mesh)
        parameters = RankParameters(program, "float64")
        first = tuple(devices[:: self.mesh.per_stage])
        self.network = RankNetwork(
            program, parameters, split, RankSizes(model.layers, BATCH, length, first, fused, cache=cache)
        )
        logits = forward(self.network, model).logits().name
        self.logits = self._of_ranks([logits])
        self.starts = self._of_ranks(node.name for _, node in parameters.assignments)
        self.writes = self._of_ranks(node.name for _, node in self.network.writes)
        self.left = self._of_ranks(self._reads(b))
        self.graph: Graph = write_out(b.graph(), self.mesh, devices)

    def _of_ranks(self, names: Any) -> list[str]:  # Any: names of nodes
        return [f"{prefix_of(rank)}{name}" for name in names for rank in range(self.mesh.per_stage)]

    def _reads(self, b: GraphBuilder) -> list[str]:
        """Names of what reads the caches and positions."""
        handles = [n for n in b.graph().op_nodes() if n.op == "VarHandleOp" and REDUCED_OVER not in n.attrs]
        return [
            b.op(
                "ReadVariableOp", n.name, dtype=n.attrs["dtype"], device=n.requested_device, name=f"left/{n.name}"
            ).name
            for n in handles
        ]

    def session(self) -> BlockingSession:
        """A session whose variables have their first values."""
        session = BlockingSession(self.graph, f"cpu:{self.mesh.devices}")
        session.run([], targets=self.starts)
        return session

    def run(self, session: BlockingSession, tokens: Array) -> Array:
        """The logits of one step."""
        fed = {f"{prefix_of(rank)}tokens": tokens for rank in range(self.mesh.per_stage)}
        return np.asarray(session.run(self.logits, fed, targets=self.writes)[0])


def all_logits(name: str, tokens: Array) -> Array:
    """The logits of every token [length, batch, vocabulary], on one rank and without a cache."""
    whole = Inference(MODELS[name], Split(), LENGTH, 0)
    with whole.session() as session:
        return whole.run(session, tokens).reshape(LENGTH, BATCH, VOCABULARY)


def drawn_tokens() -> Array:
    return np.random.default_rng(5).integers(0, VOCABULARY, (BATCH, LENGTH), np.int32)


@pytest.mark.parametrize("fused", [False, True], ids=["spelled", "fused"])
@pytest.mark.parametrize(("name", "fields"), CASES, ids=[f"{name} {fields}" for name, fields in CASES])
def test_tokens_one_by_one_have_the_logits_of_the_sequence(name: str, fields: dict[str, Any], fused: bool) -> None:
    """From the first on, in a cache that is longer than the sequence."""
    tokens = drawn_tokens()
    expected = all_logits(name, tokens)
    decoder = Inference(MODELS[name], Split(**fields), 1, LENGTH + 2, fused=fused)
    with decoder.session() as session:
        for at in range(LENGTH):
            logits = decoder.run(session, tokens[:, at : at + 1])
            np.testing.assert_allclose(logits, expected[at], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("name", "fields"), CASES, ids=[f"{name} {fields}" for name, fields in CASES])
def test_a_beginning_leaves_what_decoding_it_leaves(name: str, fields: dict[str, Any]) -> None:
    """It gives the logits of the last token, and the same cache and position as its tokens one by one."""
    tokens = drawn_tokens()
    expected = all_logits(name, tokens)[-1]
    split, left = Split(**fields), []
    for length in (LENGTH, 1):
        inference = Inference(MODELS[name], split, length, LENGTH + 2)
        with inference.session() as session:
            for at in range(0, LENGTH, length):
                logits = inference.run(session, tokens[:, at : at + length])
            np.testing.assert_allclose(logits, expected, rtol=1e-9, atol=1e-11)
            left.append(sorted(zip(inference.left, session.run(inference.left), strict=True)))
    caches = 1 if name == "latent" else 2
    assert len(left[0]) == len(left[1]) == split.tp * (2 * caches + split.pp)
    for (_, beginning), (name, decoded) in zip(*left, strict=True):
        np.testing.assert_allclose(beginning, decoded, rtol=1e-9, atol=1e-11, err_msg=name)


def test_what_has_no_cache_is_refused() -> None:
    """Models whose tokens see later ones, context parallelism, and more tokens than rows."""
    bert = BertModel(2, 8, 4, 12, vocabulary=VOCABULARY, positions=8)
    with pytest.raises(InvalidArgumentError, match="see those behind them has nothing to keep; use cache=0"):
        Inference(bert, Split(), LENGTH, LENGTH)
    with pytest.raises(UnimplementedError, match="not shared out over cp=2; use cp=1"):
        Inference(MODELS["gpt"], Split(cp=2), LENGTH, LENGTH)
    with pytest.raises(InvalidArgumentError, match="6 tokens do not fit into a cache of 5; give a larger one"):
        Inference(MODELS["gpt"], Split(), LENGTH, LENGTH - 1)
