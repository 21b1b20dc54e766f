"""What stages of a model compute and send each other for a micro-batch, and how many ops a layer is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from partita.graph.protos import FunctionDef
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model

SPLIT = Split(tp=2, pp=2, microbatches=2, sequence_parallel=True, precision="bfloat16")


def gpt(layers: int) -> GptModel:
    """Two heads of four elements."""
    return GptModel(layers, 8, 2, vocabulary=10, positions=8, pad_vocabulary=2)


def llama(layers: int) -> LlamaModel:
    """Two heads of keys for four of queries."""
    return LlamaModel(layers, 8, 4, 12, 10, kv_heads=2, pad_vocabulary=2)


def moe(layers: int) -> MoeModel:
    """Two of four experts."""
    return MoeModel(layers, 8, 4, 12, 10, kv_heads=2, experts=4, topk=2, expert_intermediate=4)


def functions(model: ModelDescription) -> Mapping[str, FunctionDef]:
    """The functions of stages by name."""
    step = build_model(model, SPLIT, "cpu:4", sequence_length=8, representatives=True)
    return {function.signature.name: function for function in step.graph_def.library.function}


def ops(function: FunctionDef) -> Counter[str]:
    """How many nodes of each op it has."""
    return Counter(node.op for node in function.node_def)


def test_gradients_of_collectives_are_on_the_stage_of_the_collective() -> None:
    """So a stage is sent the gradient of own rows, and gathers it itself."""
    for name, function in functions(gpt(4)).items():
        gathered = [node.name for node in function.node_def if "_gradient_of" in node.attr]
        layers = {part for node in gathered for part in node.split("/") if part.startswith("layer_")}
        expected: dict[str, set[str]] = {"backward_s0": {"layer_0", "layer_1"}, "backward_s1": {"layer_2", "layer_3"}}
        assert layers == expected.get(name.removesuffix("_adding"), set()), name


@pytest.mark.parametrize("recompute", ["none", "selective", "full", "products"])
@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (gpt, {"zero": 2}),
        (llama, {}),
        (llama, {"zero": 1}),
        (llama, {"overlap": ("dp",)}),
        (moe, {}),
        (moe, {"ep": 2}),
        (moe, {"ep": 2, "zero": 1, "overlap": ("dp", "ep")}),
    ],
)
def test_a_stage_has_the_gradients_of_its_layers(
    model: Callable[[int], ModelDescription],
    fields: dict[str, Any],
    recompute: Any,  # Any: of fields of a split
) -> None:
    """Also where each rank has two stages: buckets join their gradients, and their exchanges are in one order."""
    split = Split(pp=2, dp=2, interleave=2, microbatches=2, recompute=recompute, **fields)
    step = build_model(model(4), split, "gpu:4", sequence_length=8, representatives=True)
    of_stages = [f for f in step.graph_def.library.function if f.signature.name.startswith("backward_s")]
    assert len(of_stages) >= 4
    for function in of_stages:
        layers = {part for node in function.node_def for part in node.name.split("/") if part.startswith("layer_")}
        stage = function.signature.name.removeprefix("backward_s").removesuffix("_adding")
        assert layers == {f"layer_{stage}"}, function.signature.name


def test_stages_add_up_their_parts_of_a_tied_table() -> None:
    """The first stage reads no gradient of the table: the last one's part is added once a step."""
    made = functions(gpt(2))
    assert not [arg.name for arg in made["backward_s0"].signature.input_arg if "logits" in arg.name]
    assert [arg.name for arg in made["backward_s1_adding"].signature.input_arg if "tied_table" in arg.name]


@pytest.mark.parametrize(
    ("model", "forwards", "backwards"),
    [
        (
            gpt,
            {"AddV2": 2, "BiasAdd": 4, "CollectiveReduceScatterV2": 2, "MatMul": 4, "Partita>AllGather": 2}
            | {"Partita>FlashAttention": 1, "Partita>Gelu": 1, "Partita>LayerNorm": 2, "Reshape": 2, "SplitV": 1},
            {"AddN": 2, "BiasAddGrad": 4, "Cast": 8, "CollectiveReduceScatterV2": 2, "ConcatV2": 1, "MatMul": 8}
            | {"Partita>AllGather": 2, "Partita>FlashAttentionGrad": 1, "Partita>GeluGrad": 1}
            | {"Partita>LayerNormGrad": 2, "Reshape": 2},
        ),
        (
            llama,
            {"AddV2": 2, "CollectiveReduceScatterV2": 2, "MatMul": 5, "Partita>AllGather": 2}
            | {"Partita>FlashAttention": 1, "Partita>GatedSilu": 1, "Partita>RMSNorm": 2, "Partita>Rotary": 2}
            | {"Reshape": 3, "SplitV": 1},
            {"AddN": 3, "Cast": 5, "CollectiveReduceScatterV2": 2, "ConcatV2": 1, "MatMul": 10}
            | {"Partita>AllGather": 2, "Partita>FlashAttentionGrad": 1, "Partita>GatedSiluGrad": 1}
            | {"Partita>RMSNormGrad": 2, "Partita>Rotary": 2, "Reshape": 3},
        ),
    ],
    ids=["gpt", "llama"],
)
def test_a_layer_has_the_ops_of_its_kernels(
    model: Callable[[int], ModelDescription], forwards: dict[str, int], backwards: dict[str, int]
) -> None:
    """What one layer more adds to the functions of a stage: no constant, and few ops that only convert."""
    fewer, more = functions(model(2)), functions(model(4))
    assert ops(more["forward_s1"]) - ops(fewer["forward_s1"]) == forwards
    assert ops(more["backward_s1"]) - ops(fewer["backward_s1"]) == backwards
