"""Transformers on one rank have the logits, losses and gradients that Hugging Face's have with the same weights.

`data/answers.json` is written by `tools/make_transformer_answers.py`, in float32.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.graph.builder.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.gradients.backward import gradients
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.scenarios.models.families import model_from_config
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.parameters import uniform
from partita.scenarios.workloads.transformers.forward import forward
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters
from tests.scenarios.workloads.transformers.joint_weights import by_parts, drawn

ANSWERS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "answers.json").read_text())  # Any: JSON
MODELS = [name for name in ANSWERS if name != "versions"]


@pytest.mark.parametrize("fused", [False, True], ids=["spelled", "fused"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_a_config_equals_hugging_face(name: str, fused: bool, tmp_path: Path) -> None:
    """Logits and the mean loss within 1e-5 of theirs, and the product of every gradient with fixed numbers."""
    answer = ANSWERS[name]
    (tmp_path / "config.json").write_text(json.dumps(answer["config"]))
    model = model_from_config(tmp_path / "config.json")
    inputs = {key: np.asarray(x, np.float32 if key == "images" else np.int32) for key, x in answer["inputs"].items()}
    rows = model.rows_of(inputs.get("tokens", inputs["labels"]).shape[-1])
    logits, loss, slopes = values(model, rows or 0, inputs, fused)
    expected = np.array(answer["logits"])
    if expected.ndim == 3:  # our rows have the sequence first
        expected = expected.transpose(1, 0, 2).reshape(-1, expected.shape[-1])
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    assert loss == pytest.approx(answer["loss"], abs=1e-6)
    assert slopes.keys() == answer["gradients"].keys()
    for weight, slope in slopes.items():
        probe = uniform(f"{weight}/probe", (slope.size,))
        tolerance = 1e-6 + 1e-5 * float(np.linalg.norm(slope) * np.linalg.norm(probe))
        product = slope.reshape(-1).astype(float) @ probe
        assert product == pytest.approx(answer["gradients"][weight], abs=tolerance), weight


def values(
    model: Any, rows: int, inputs: dict[str, Array], fused: bool
) -> tuple[Array, float, dict[str, Array]]:  # Any: the model of a family
    """Logits, mean loss, and the gradients by weight without rows that only pad."""
    b = GraphBuilder()
    program = RankProgram(b, Mesh())
    parameters = RankParameters(program, "float32", starts=False)
    sizes = RankSizes(model.layers, len(inputs["labels"]), rows, ("/device:CPU:0",), fused)
    end = forward(RankNetwork(program, parameters, Split(), sizes), model)
    losses = end.losses()
    mean = b.op("RealDiv", losses.total, losses.labelled, name="mean")[0]
    logits = end.logits()
    slopes = gradients(b, [mean], [weight.read for weight in parameters.all])
    weights = [*parameters.all, *parameters.untrained]
    fed = inputs | {weight.read.name: numbers(weight.name, weight.part, model) for weight in weights}
    with BlockingSession(b.graph_def(), "cpu:1") as session:
        found = session.run([logits.name, mean.name, *map(str, slopes)], fed)
    by_name = dict(zip([weight.name for weight in parameters.all], found[2:], strict=True))
    filled = {name: slope[: used(name, len(slope), model)] for name, slope in by_name.items()}
    return found[0], float(found[1]), by_parts(filled, model)


def numbers(name: str, shape: tuple[int, ...], model: Any) -> Array:  # Any: the model of a family
    """The numbers of a weight, with zeros where it only pads the vocabulary."""
    rows = used(name, shape[0], model)
    filled = drawn(name, (rows, *shape[1:]), model, uniform) / np.float32(2) + np.float32(name.endswith("/gain"))
    return np.concatenate([filled, np.zeros((shape[0] - rows, *shape[1:]), np.float32)])


def used(name: str, rows: int, model: Any) -> int:  # Any: the model of a family
    """The rows of a weight that do not pad the vocabulary."""
    of_vocabulary = name in ("embedding/tokens/table", "head/table", "head/bias")
    return min(rows, model.vocabulary) if of_vocabulary and hasattr(model, "vocabulary") else rows
