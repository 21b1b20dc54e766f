"""Deployments and loads from tables of measurements: a row of a table of rates, and one of a table of models.

    meta-llama/Llama-3.1-70B,h200_sxm,trtllm,...,fp8,fp8,fp8,1024,1024,4,1,1,4,1,16,16      and the model's sizes
        Deployment(LlamaModel(80 layers, ...), 1 HGX-H200, tp=4, weights="fp8"), ServingLoad(16, 1024, 1024)

What a row leaves open is taken so: the cache of a model in fp8 or fp4 is in fp8, of others in bf16, as what their
memory holds without queues says. Where heads cannot be shared by all `tp_size` GPUs (128 by 72), attention was
repeated: as often as need be. A row without `concurrency` has batch_size requests for each replica. A model with a
window sees it in every second layer (gpt-oss is the one of these tables). Experts of gpt-oss are in MXFP4 and its other
weights in bf16, whatever the row says: so it was published.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

from ...devices.catalog import device_spec
from ...devices.catalog.hosts import host_model
from ...devices.cluster import Cluster
from ...devices.cluster_file import parse_cluster
from ...errors import InvalidArgumentError
from ..models.llama import LlamaModel
from ..models.moe import LatentAttention, MoeModel
from ..models.rows import ModelRow, read_row
from .deployment import Deployment
from .rates import ServingLoad

HOSTS = ("DGX-A100", "DGX-H100", "HGX-H200", "DGX-B200", "DGX-B300", "GB200-NVL72")
"""machines that a row may mean by the name of its GPU"""
WEIGHTS = {"": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
MXFP4_MODELS = ("gpt-oss",)
"""published with experts in MXFP4"""


class MeasuredDeployment(NamedTuple):
    """A deployment, its load and its framework."""

    deployment: Deployment
    load: ServingLoad
    framework: str


def model_of_row(path: Path, name: str) -> LlamaModel:
    """The model of a row of a table such as llm_serving_models.csv, whose columns are named as in a config.json."""
    row = read_row(path, name)
    size: dict[str, Any] = {  # Any: fields of a model differ in type
        "layers": row.size("num_hidden_layers"),
        "hidden": row.size("hidden_size"),
        "heads": row.size("num_attention_heads"),
        "intermediate": row.size("intermediate_size"),
        "vocabulary": row.size("vocab_size"),
        "kv_heads": row.size("num_key_value_heads"),
        "head_size": _or(row, "head_dim", 0),
        "window": _or(row, "sliding_window", 0),
    }
    if not row.texts.get("n_routed_experts"):
        return LlamaModel(**size)
    units = _or(row, "moe_intermediate_size", size["intermediate"])
    return MoeModel(
        **size,
        experts=row.size("n_routed_experts"),
        topk=row.size("num_experts_per_tok"),
        expert_intermediate=units,
        shared_intermediate=_or(row, "n_shared_experts", 0) * units,
        dense_layers=_or(row, "first_k_dense_replace", 0),
        latent=_latent(row),
    )


def _or(row: ModelRow, column: str, missing: int) -> int:
    return row.size(column) if row.texts.get(column) else missing


def _latent(row: ModelRow) -> LatentAttention | None:
    if not row.texts.get("kv_lora_rank"):
        return None
    return LatentAttention(
        kv_rank=row.size("kv_lora_rank"),
        q_rank=_or(row, "q_lora_rank", 0),
        nope_size=row.size("qk_nope_head_dim"),
        rope_size=row.size("qk_rope_head_dim"),
        value_size=row.size("v_head_dim"),
    )


@cache
def cluster_of(system: str, gpus: int) -> Cluster:
    """As many machines with that GPU as have so many; InvalidArgumentError for a GPU without a machine."""
    name = device_spec(system).name
    found = next((host for host in HOSTS if host_model(host).gpu == name), None)
    if found is None:
        raise InvalidArgumentError(f"the catalog has no machine with {name} for serving; it has {', '.join(HOSTS)}")
    tasks = -(-gpus // host_model(found).gpus)
    return parse_cluster(f'[[host]]\nmodel = "{found}"\njob = "serving"\ntasks = {tasks}\n')


def measured_deployment(row: Mapping[str, str], models: Path) -> MeasuredDeployment:
    """What a row of a table such as llm_serving.csv was measured on; InvalidArgumentError for one that cannot be."""
    model = model_of_row(models, row["model"])
    tp, replicas = _count(row, "tp_size"), _count(row, "attention_dp_size")
    shared = gcd(tp, model.heads) if model.heads % tp else tp
    if shared != tp:
        replicas, tp = replicas * (tp // shared), shared
    is_moe = isinstance(model, MoeModel)
    expert_tp, expert_ep = (_count(row, "moe_tp_size"), _count(row, "moe_ep_size")) if is_moe else (1, 1)
    precision, is_mxfp4 = row["precision"], any(text in row["model"] for text in MXFP4_MODELS)
    gpus = max(tp * replicas, expert_tp * expert_ep)
    deployment = Deployment(
        model,
        cluster_of(row["system"], gpus),
        tp=tp,
        attention_dp=max(replicas, gpus // tp),
        expert_tp=expert_tp,
        expert_ep=expert_ep,
        weights="bf16" if is_mxfp4 else _weights(row["gemm_quant"]),
        expert_weights=_mxfp4(row["system"]) if is_mxfp4 else _weights(row["moe_quant"]),
        cache="fp8" if precision else "bf16",
        windowed_layers=model.layers // 2 if model.window else None,
    )
    # Where more requests are served than the batches of all replicas hold, there are several such deployments.
    batches = float(row["batch_size"]) * _count(row, "attention_dp_size")
    concurrency = min(float(row["concurrency"] or batches), batches)
    return MeasuredDeployment(deployment, ServingLoad(concurrency, int(row["isl"]), int(row["osl"])), row["backend"])


def _count(row: Mapping[str, str], column: str) -> int:
    """A number of GPUs; 1 where the row has none or 0."""
    return max(1, int(row[column] or 1))


def _mxfp4(system: str) -> str:
    """With 8-bit activations where the GPU has fp4 units, else with 16-bit arithmetic."""
    return "w4a8_mxfp4_mxfp8" if "fp4" in device_spec(system).peak_flops_per_s else "w4a16_mxfp4"


def _weights(text: str) -> str:
    if text not in WEIGHTS:
        raise InvalidArgumentError(f"weights {text!r} are not known; it must be one of {', '.join(map(repr, WEIGHTS))}")
    return WEIGHTS[text]
