"""The families of models as workloads: a config.json and a split become the graph of a step, by `build_model`.

    find_workload("llama").made({"config": "config.json", "split": "tp=8,pp=4,dp=2,microbatches=16"})

All families have the same settings, which are those of `build_model` as texts can say them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from ...devices.cluster import Cluster, local_cluster
from ...errors import InvalidArgumentError
from ..models.description import ModelDescription
from ..models.split import Split
from .inference import Inference
from .model_building import build_model
from .model_step import ModelStep

LENGTH = 4096
"""tokens of a sequence where neither a setting nor the model says how many"""


def workload_of(family: type[ModelDescription]) -> Callable[..., ModelStep]:
    """The workload of a family of models."""

    def build(
        *,
        config: ModelDescription,
        split: Split,
        cluster: Cluster | None = None,
        sequence_length: int = 0,
        inference: str = "",
        context: int = 0,
        representatives: bool = False,
        fused: bool = True,
        imbalance: float = 1.0,
    ) -> ModelStep:
        """A step of the model of `config`, of training or of inference, "prefill" or "decode", with `context` tokens.

        `sequence_length` 0: one that is decoded, the whole context in a prefill, else as many as there are positions,
        or 4096. Without `cluster` the devices are GPUs of one machine, as many as the split has. Raises as
        `build_model`, and InvalidArgumentError for an `imbalance` of experts that the model does not have.
        """
        if imbalance != 1 and not config.shared_by_expert_parallel:
            raise InvalidArgumentError(f"imbalance={imbalance:g}: {family.__name__} has no experts; leave it out")
        step = build_model(
            config,
            split,
            local_cluster(f"cpu:1,gpu:{split.devices}") if cluster is None else cluster,
            sequence_length=sequence_length or _length(config, inference, context),
            inference=cast("Inference", inference) if inference else None,
            context=context,
            representatives=representatives,
            fused=fused,
            imbalance=imbalance,
        )
        return replace(step, warnings=(*config.left_out, *step.warnings))

    build.__annotations__["config"] = family
    return build


def _length(config: ModelDescription, inference: str, context: int) -> int | None:
    """The tokens of a sequence where no setting says how many; None where one is decoded."""
    if inference == "decode":
        return None
    return (context if inference else 0) or config.positions or LENGTH
