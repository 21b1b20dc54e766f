"""Small decoders of all kinds, and one step of them in closed form and simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from partita.devices import Cluster, Timeline, cut, parse_cluster, simulate
from partita.devices.timing.costs.fitted import FittedSource
from partita.scenarios import GptModel, LlamaModel, MoeModel, Split, build_model
from partita.scenarios.models.moe import LatentAttention
from partita.scenarios.models.split import Precision
from partita.scenarios.models.stage_cut import even_stages
from partita.scenarios.planners.inference.durations import StageClock
from partita.scenarios.planners.inference.passages import Passages, ReplicaLayout
from partita.scenarios.planners.inference.rank import Phase, ServedModel
from partita.scenarios.planners.machine import Machine

SIZES: Mapping[str, Any] = {"hidden": 2048, "heads": 16, "vocabulary": 32000}  # Any: fields differ in type
LATENT = LatentAttention(kv_rank=512, q_rank=768, nope_size=128, rope_size=64, value_size=128)
ROUTED: Mapping[str, Any] = {"experts": 16, "topk": 4, "expert_intermediate": 1024}  # Any: as above


def llama_8b(layers: int = 32) -> LlamaModel:
    """Llama-3 8B."""
    return LlamaModel(layers=layers, hidden=4096, heads=32, kv_heads=8, intermediate=14336, vocabulary=128256)


MODELS: Mapping[str, Callable[[int], ServedModel]] = {
    "gpt": lambda layers: GptModel(layers=layers, positions=8192, tied=False, **SIZES),
    "llama": llama_8b,
    "qwen": lambda layers: LlamaModel(layers=layers, kv_heads=2, intermediate=5632, qkv_bias=True, **SIZES),
    "window": lambda layers: LlamaModel(layers=layers, kv_heads=4, intermediate=5632, window=256, **SIZES),
    "mixtral": lambda layers: MoeModel(layers=layers, kv_heads=4, intermediate=5632, **ROUTED, **SIZES),
    "deepseek": lambda layers: MoeModel(
        layers=layers,
        intermediate=5632,
        dense_layers=1,
        shared_intermediate=1024,
        router="sigmoid",
        router_bias=True,
        groups=4,
        groups_kept=2,
        group_score="top2",
        latent=LATENT,
        **ROUTED,
        **SIZES,
    ),
}


def dgx(gpu: str = "H100", hosts: int = 1) -> Cluster:
    """Machines of eight."""
    return parse_cluster(f'[[host]]\nmodel = "DGX-{gpu}"\njob = "worker"\ntasks = {hosts}')


def passages_of(model: ServedModel, cluster: Cluster, precision: Precision = "bfloat16") -> Passages:
    """The closed form on a cluster."""
    return Passages(model, StageClock(Machine.of(cluster), FittedSource()), precision)


def simulated(
    model: ServedModel, cluster: Cluster, layout: ReplicaLayout, phase: Phase, precision: Precision = "bfloat16"
) -> Timeline:
    """The step of the built graph."""
    split = Split(
        tp=layout.tp,
        pp=layout.pp,
        dp=layout.ep,
        ep=layout.ep,
        microbatch=phase.sequences,
        stages=even_stages(model.layers, layout.pp),
        precision=precision,
    )
    length = None if phase.decodes else phase.length
    step = build_model(
        model,
        split,
        cluster,
        sequence_length=length,
        inference=phase.kind,
        context=phase.context,
        representatives=True,
    )
    return simulate(cut(step.graph, cluster, targets=step.targets), cluster)
