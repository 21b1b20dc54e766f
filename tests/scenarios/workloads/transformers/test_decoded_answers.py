"""Tokens that are decoded one by one have the logits that Hugging Face's models have of whole sequences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.graph.builder.builder import GraphBuilder
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.scenarios.models.families import model_from_config
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.transformers.forward import forward
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters
from tests.scenarios.workloads.transformers.test_answers import ANSWERS, numbers

MODELS = ["gpt2", "llama", "qwen2", "mistral", "mixtral", "deepseek_v2", "deepseek_v3"]


@pytest.mark.parametrize("fused", [False, True], ids=["spelled", "fused"])
@pytest.mark.parametrize("name", MODELS)
def test_decoded_logits_equal_those_of_hugging_face(name: str, fused: bool, tmp_path: Path) -> None:
    """Within 1e-5, with the same weights, at each position; what is likeliest is the same token."""
    answer = ANSWERS[name]
    (tmp_path / "config.json").write_text(json.dumps(answer["config"]))
    model = model_from_config(tmp_path / "config.json")
    tokens, wanted = np.array(answer["inputs"]["tokens"], np.int32), np.array(answer["logits"])
    batch, length = tokens.shape
    b = GraphBuilder()
    program = RankProgram(b, Mesh())
    parameters = RankParameters(program, "float32", has_masters=False)
    sizes = RankSizes(model.layers, batch, 1, ("/device:CPU:0",), fused, cache=length + 1)
    network = RankNetwork(program, parameters, Split(), sizes)
    logits = forward(network, model).logits()
    weights = [*parameters.all, *parameters.untrained]
    fed = {weight.read.name: numbers(weight.name, weight.part, model) for weight in weights}
    with BlockingSession(b.graph_def(), "cpu:1") as session:
        session.run([], targets=[start.name for _, start in parameters.assignments])
        for at in range(length):
            fed["tokens"] = tokens[:, at : at + 1]
            (found,) = session.run([logits.name], fed, targets=[write.name for _, write in network.writes])
            np.testing.assert_allclose(found, wanted[:, at], atol=1e-5)
            np.testing.assert_array_equal(found.argmax(-1), wanted[:, at].argmax(-1))
