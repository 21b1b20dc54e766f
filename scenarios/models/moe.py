"""Mixtures of experts: Mixtral, and DeepSeek V2 and V3 with latent attention, shared experts and dense first layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

from ...errors import InvalidArgumentError
from .description import check_sizes
from .fields import ConfigFields, read_fields
from .llama import LlamaModel, decoder_sizes, row_sizes
from .moe_rules import RULES
from .rows import ModelRow, read_row

RouterScore: TypeAlias = Literal["softmax", "sigmoid"]
"""what a router makes of its products"""
GroupScore: TypeAlias = Literal["max", "top2"]
"""the score of a group of experts: its best one's, or the sum of its best two"""


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, 2024): keys and values of all heads follow from one narrow row a token.

    kv_rank, q_rank        widths of the rows that keys and values, and queries, are made from; q_rank 0: of the input
    nope_size, rope_size   elements of a query or key head without and with rotary positions; the latter key is shared
    value_size             elements of a value head
    interleaved            neighbours turn together, not the first half with the second
    epsilon                of the RMSNorm of both narrow rows, whatever the model's is (as DeepSeek's code)
    """

    kv_rank: int
    nope_size: int
    rope_size: int
    value_size: int
    q_rank: int = 0
    interleaved: bool = True
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        check_sizes(self, kv_rank=self.kv_rank, nope_size=self.nope_size, rope_size=self.rope_size)
        check_sizes(self, value_size=self.value_size, q_rank=self.q_rank + 1)

    @property
    def query_size(self) -> int:
        """Elements of a query or key head."""
        return self.nope_size + self.rope_size


@dataclass(frozen=True, slots=True)
class MoeModel(LlamaModel):
    """A `LlamaModel` whose feed-forward layers, but for the first `dense_layers`, send each token to `topk` experts.

    intermediate           units of the dense layers
    experts, topk          routed experts of a layer, and how many of them a token is sent to
    expert_intermediate    units of a routed expert
    shared_intermediate    units of the expert that every token is sent to (several as one); 0: none
    dense_layers           layers at the beginning without experts
    router                 "softmax" over all experts, or "sigmoid" of each
    router_bias            each expert has a correction that counts in choosing it, not in its weight; no gradient
                           trains it, and it is no parameter
    groups, groups_kept    experts are chosen from the best groups_kept of so many equal groups of neighbours
    group_score            of a group: "max", or "top2": the sum of its best two
    normalise_weights      the weights of the chosen experts are divided by their sum
    weight_scale           what they are multiplied with then
    latent                 latent attention; None: grouped-query heads. kv_heads and head_size have no meaning with it

    Raises InvalidArgumentError for what contradicts itself.
    """

    _: KW_ONLY
    experts: int
    topk: int
    expert_intermediate: int
    shared_intermediate: int = 0
    dense_layers: int = 0
    router: RouterScore = "softmax"
    router_bias: bool = False
    groups: int = 1
    groups_kept: int = 1
    group_score: GroupScore = "max"
    normalise_weights: bool = True
    weight_scale: float = 1.0
    latent: LatentAttention | None = None

    def __post_init__(self) -> None:
        LlamaModel.__post_init__(self)
        check_sizes(self, experts=self.experts, topk=self.topk, expert_intermediate=self.expert_intermediate)
        check_sizes(self, groups=self.groups, groups_kept=self.groups_kept)
        check_sizes(self, shared_intermediate=self.shared_intermediate + 1, dense_layers=self.dense_layers + 1)
        for name, kinds in (("router", get_args(RouterScore)), ("group_score", get_args(GroupScore))):
            if getattr(self, name) not in kinds:
                raise InvalidArgumentError(f"MoeModel: {name}={getattr(self, name)!r} is none of {', '.join(kinds)}")
        if self.dense_layers > self.layers:
            raise InvalidArgumentError(f"MoeModel: dense_layers={self.dense_layers} is more than layers={self.layers}")
        if self.experts % self.groups or self.groups_kept > self.groups:
            raise InvalidArgumentError(
                f"MoeModel: groups={self.groups} must divide experts={self.experts}, "
                f"and groups_kept={self.groups_kept} be at most groups"
            )
        choice = self.experts // self.groups * self.groups_kept
        if self.topk > choice:
            raise InvalidArgumentError(
                f"MoeModel: topk={self.topk} is more than the {choice} experts of the kept groups"
            )
        if self.group_score == "top2" and self.groups > 1 and self.experts // self.groups < 2:
            raise InvalidArgumentError(
                f"MoeModel: group_score='top2' needs groups of two experts; groups={self.groups}"
            )

    @classmethod
    def from_config(cls, path: Path | str) -> Self:
        """The model of a config.json of type "mixtral", "deepseek_v2" or "deepseek_v3".

        Raises as `ModelDescription.from_config`.
        """
        found = read_fields(path, RULES)
        sizes = _mixtral(found) if found.rules.model_type == "mixtral" else _deepseek(found)
        return cls(**{**decoder_sizes(found), **sizes})

    @classmethod
    def from_row(cls, path: Path | str, name: str, *, layers: int, **beside: Any) -> Self:
        """The model of a row with experts, as `LlamaModel.from_row`; how its router chooses is given beside it too."""
        row = read_row(path, name)
        return cls(**{**row_sizes(row), **_row_experts(row), "layers": layers, **beside})

    @property
    def softmax_scale(self) -> float:
        """What the scores of attention are multiplied with: 1 / sqrt(query size), latent with yarn's factor."""
        if self.latent is None:
            return 1 / sqrt(self.head_size)
        return self.rope.softmax_factor / sqrt(self.latent.query_size)

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return self.layers - self.dense_layers

    @property
    def attention_parameters(self) -> int:
        """Of one block. Latent: the narrow rows with their norms, what is made from them, and the output."""
        it = self.latent
        if it is None:
            return self._grouped_attention_parameters()
        query = self.heads * it.query_size
        queries = it.q_rank * (self.hidden + 1 + query) if it.q_rank else self.hidden * query
        keys = self.hidden * (it.kv_rank + it.rope_size) + it.kv_rank
        values = it.kv_rank * self.heads * (it.nope_size + it.value_size)
        return queries + keys + values + self.heads * it.value_size * self.hidden

    @property
    def feed_forward_parameters(self) -> int:
        """Of all blocks: dense layers, and routers with their experts."""
        return self._feed_forward_parameters(self.experts)

    @property
    def active_parameters(self) -> int:
        """All but those of the experts that a token is not sent to."""
        return self.parameters - self.feed_forward_parameters + self._feed_forward_parameters(self.topk)

    def _feed_forward_parameters(self, experts: int) -> int:
        units = experts * self.expert_intermediate + self.shared_intermediate
        routed = self.hidden * self.experts + 3 * self.hidden * units
        return self.dense_layers * 3 * self.hidden * self.intermediate + self.expert_layers * routed

    @property
    def attention_width(self) -> int:
        """heads * head_size; latent: heads * (query size + value size) / 2."""
        if self.latent is None:
            return self.heads * self.head_size
        return self.heads * (self.latent.query_size + self.latent.value_size) // 2

    @property
    def cut_by_tensor_parallel(self) -> Mapping[str, int]:
        """Query heads, and the units of dense layers and shared experts; routed experts are not cut."""
        dense = {"intermediate": self.intermediate} if self.dense_layers else {}
        shared = {"shared_intermediate": self.shared_intermediate} if self.shared_intermediate else {}
        return {"heads": self.heads, **dense, **shared}

    @property
    def shared_heads(self) -> int | None:
        """The heads of keys and values; None for latent attention, which makes them for each query head."""
        return None if self.latent is not None else self.kv_heads

    @property
    def shared_by_expert_parallel(self) -> Mapping[str, int]:
        """The routed experts."""
        return {"experts": self.experts}


def _mixtral(found: ConfigFields) -> dict[str, Any]:  # Any: fields differ in type
    return {
        "window": found.count("sliding_window"),
        "experts": found.size("num_local_experts"),
        "topk": found.size("num_experts_per_tok"),
        "expert_intermediate": found.size("intermediate_size"),
    }


def _deepseek(found: ConfigFields) -> dict[str, Any]:  # Any: fields differ in type
    is_v3 = found.rules.model_type == "deepseek_v3"
    grouped = is_v3 or found.values["topk_method"] == "group_limited_greedy"
    return {
        "head_size": found.size("qk_nope_head_dim"),
        "experts": found.size("n_routed_experts"),
        "topk": found.size("num_experts_per_tok"),
        "expert_intermediate": found.size("moe_intermediate_size"),
        "shared_intermediate": found.count("n_shared_experts") * found.size("moe_intermediate_size"),
        "dense_layers": min(found.count("first_k_dense_replace"), found.size("num_hidden_layers")),
        "router": "sigmoid" if is_v3 else "softmax",
        "router_bias": is_v3,
        "groups": found.size("n_group") if grouped else 1,
        "groups_kept": found.size("topk_group") if grouped else 1,
        "group_score": "top2" if is_v3 else "max",
        "normalise_weights": is_v3 and found.flag("norm_topk_prob"),
        "weight_scale": found.number("routed_scaling_factor"),
        "latent": LatentAttention(
            kv_rank=found.size("kv_lora_rank"),
            q_rank=found.count("q_lora_rank"),
            nope_size=found.size("qk_nope_head_dim"),
            rope_size=found.size("qk_rope_head_dim"),
            value_size=found.size("v_head_dim"),
            interleaved=not is_v3 or found.flag("rope_interleave"),
        ),
    }


def _row_experts(row: ModelRow) -> dict[str, Any]:  # Any: fields differ in type
    sizes: dict[str, Any] = {
        "experts": row.size("expert_num"),
        "topk": row.size("topk"),
        "expert_intermediate": row.size("moe_ffn_hidden_size"),
    }
    for name, column in (
        ("shared_intermediate", "moe_shared_expert_intermediate_size"),
        ("dense_layers", "dense_layers"),
    ):
        if row.texts.get(column):
            sizes[name] = row.size(column)
    if row.texts.get("kv_lora_rank"):
        sizes["latent"] = LatentAttention(
            kv_rank=row.size("kv_lora_rank"),
            q_rank=row.size("q_lora_rank") if row.texts.get("q_lora_rank") else 0,
            nope_size=row.size("qk_head_dim"),
            rope_size=row.size("qk_pos_emb_head_dim"),
            value_size=row.size("v_head_dim"),
        )
    return sizes
