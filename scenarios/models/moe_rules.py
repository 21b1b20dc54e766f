"""The fields of config.json that mixtures of experts know, by model_type, with transformers' defaults."""

from __future__ import annotations

from .fields import NO_DROPOUT, ConfigRules
from .llama import DECODER_SIZES, SILU
from .rope_fields import rope_defaults

_NO_BALANCE = "the loss that balances experts is not there"

_DEEPSEEK: dict[str, object] = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
} | {"rms_norm_eps": 1e-6, "tie_word_embeddings": False}
_DEEPSEEK_SIZES = (*DECODER_SIZES, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
_DEEPSEEK_SAME = SILU | {
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "moe_layer_freq": (1,),
    "output_router_logits": (False,),
}
_DEEPSEEK_LEFT_OUT = {
    "attention_dropout": NO_DROPOUT,
    "aux_loss_alpha": _NO_BALANCE,
    "num_nextn_predict_layers": "layers that predict further tokens are not there",
    "num_mtp_layers": "layers that predict further tokens are not there",
}
# With latent attention each query head has its own keys: num_key_value_heads and head_dim say nothing.
_DEEPSEEK_IGNORED = frozenset(
    (*("ep_size", "head_dim", "num_key_value_heads", "pretraining_tp", "qk_head_dim", "seq_aux"),)
)

RULES = (
    ConfigRules(
        "mixtral",
        sizes=(*DECODER_SIZES, "num_local_experts", "num_experts_per_tok"),
        defaults=(
            rope_defaults(1e6, 131072)
            | {"num_key_value_heads": 8, "head_dim": None, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
            | {"sliding_window": None}
        ),
        same={**SILU, "output_router_logits": (False,), "router_jitter_noise": (0.0,)},
        left_out={"attention_dropout": NO_DROPOUT},
        without_effect=frozenset({"router_aux_loss_coef"}),  # counts with output_router_logits only
        architectures=("MixtralForCausalLM",),
    ),
    ConfigRules(
        "deepseek_v2",
        sizes=_DEEPSEEK_SIZES,
        defaults=(
            rope_defaults()
            | _DEEPSEEK
            | {"n_shared_experts": 2, "first_k_dense_replace": 0, "n_group": None, "topk_group": None}
            | {"topk_method": "greedy", "routed_scaling_factor": 1.0}
        ),
        same={
            **_DEEPSEEK_SAME,
            "topk_method": ("greedy", "group_limited_greedy"),
            "scoring_func": ("softmax",),
            "norm_topk_prob": (False,),
        },
        left_out=_DEEPSEEK_LEFT_OUT,
        without_effect=_DEEPSEEK_IGNORED,
        architectures=("DeepseekV2ForCausalLM",),
    ),
    ConfigRules(
        "deepseek_v3",
        sizes=_DEEPSEEK_SIZES,
        defaults=(
            rope_defaults(positions=4096)
            | _DEEPSEEK
            | {"n_shared_experts": 1, "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4}
            | {"norm_topk_prob": True, "routed_scaling_factor": 2.5, "rope_interleave": True}
        ),
        same={**_DEEPSEEK_SAME, "topk_method": ("noaux_tc",), "scoring_func": ("sigmoid",)},
        left_out=_DEEPSEEK_LEFT_OUT,
        without_effect=_DEEPSEEK_IGNORED,
        architectures=("DeepseekV3ForCausalLM",),
    ),
)
