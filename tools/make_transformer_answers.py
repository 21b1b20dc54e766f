"""Writes logits, losses and gradients of small transformers by Hugging Face, which ours have to equal.

    python tools/make_transformer_answers.py tests/scenarios/workloads/transformers/data/answers.json   (transformers)

Weights are numbers that depend on their names in our networks. Of a gradient its product with other such numbers is
written. The tables of names say which of our layers is which of theirs, and how its weights lie there:

    same       the tensor "ours" is "theirs.weight"
    norm       "ours/gain" and "ours/offset" are "theirs.weight" and, if there is one, "theirs.bias"
    linear     "ours/weights" is "theirs.weight" transposed, "ours/bias" is "theirs.bias", if there is one
    conv1d     the same, not transposed; "third k" are columns of that third of them
    router     "ours/weight" is "theirs.weight" transposed, "ours/bias" the buffer "theirs.e_score_correction_bias"
    heads      as linear, the columns "begin end" of each head, which has so many
    experts    the tensor "ours" is "theirs" with its last two axes exchanged; "half k" is that half of their columns
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch
import transformers as hf

BATCH, SEQUENCE, VOCABULARY, SIDE, PATCH = 2, 6, 20, 8, 4
_WIDE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
_DECODER = {**_WIDE, "vocab_size": VOCABULARY, "num_key_value_heads": 2, "bos_token_id": None, "eos_token_id": None}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "original_max_position_embeddings": 32,
    "mscale": 1.0,
    "mscale_all_dim": 0.8,
}
_EXPERTS = {"n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 12, "n_group": 4, "topk_group": 2}
_LATENT = {"kv_lora_rank": 10, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 8}
_EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}
_GPT2_NAMES = """
    embedding/tokens/table        transformer.wte                 same
    embedding/positions/table     transformer.wpe                 same
    layer_N/attention/norm        transformer.h.N.ln_1            norm
    layer_N/attention/query       transformer.h.N.attn.c_attn     third 0
    layer_N/attention/key         transformer.h.N.attn.c_attn     third 1
    layer_N/attention/value       transformer.h.N.attn.c_attn     third 2
    layer_N/attention/output      transformer.h.N.attn.c_proj     conv1d
    layer_N/feed_forward/norm     transformer.h.N.ln_2            norm
    layer_N/feed_forward/up       transformer.h.N.mlp.c_fc        conv1d
    layer_N/feed_forward/down     transformer.h.N.mlp.c_proj      conv1d
    head/norm                     transformer.ln_f                norm
"""
_LLAMA_NAMES = """
    embedding/tokens/table        model.embed_tokens                          same
    layer_N/attention/norm        model.layers.N.input_layernorm              norm
    layer_N/attention/query       model.layers.N.self_attn.q_proj             linear
    layer_N/attention/key         model.layers.N.self_attn.k_proj             linear
    layer_N/attention/value       model.layers.N.self_attn.v_proj             linear
    layer_N/attention/output      model.layers.N.self_attn.o_proj             linear
    layer_N/feed_forward/norm     model.layers.N.post_attention_layernorm     norm
    layer_N/feed_forward/gate     model.layers.N.mlp.gate_proj                linear
    layer_N/feed_forward/up       model.layers.N.mlp.up_proj                  linear
    layer_N/feed_forward/down     model.layers.N.mlp.down_proj                linear
    head/norm                     model.norm                                  norm
"""
_GROUPED_NAMES = """
    layer_N/attention/query       model.layers.N.self_attn.q_proj             linear
    layer_N/attention/key         model.layers.N.self_attn.k_proj             linear
    layer_N/attention/value       model.layers.N.self_attn.v_proj             linear
"""
_LATENT_NAMES = """
    layer_N/attention/query_down      model.layers.N.self_attn.q_a_proj              linear
    layer_N/attention/query_norm      model.layers.N.self_attn.q_a_layernorm         norm
    layer_N/attention/query_up        model.layers.N.self_attn.q_b_proj              linear
    layer_N/attention/query_up        model.layers.N.self_attn.q_proj                linear
    layer_N/attention/key_value_down  model.layers.N.self_attn.kv_a_proj_with_mqa    linear
    layer_N/attention/key_value_norm  model.layers.N.self_attn.kv_a_layernorm        norm
    layer_N/attention/key_up          model.layers.N.self_attn.kv_b_proj             heads 0 6 14
    layer_N/attention/value_up        model.layers.N.self_attn.kv_b_proj             heads 6 14 14
"""
_MOE_NAMES = """
    embedding/tokens/table             model.embed_tokens                          same
    layer_N/attention/norm             model.layers.N.input_layernorm              norm
    layer_N/attention/output           model.layers.N.self_attn.o_proj             linear
    layer_N/feed_forward/norm          model.layers.N.post_attention_layernorm     norm
    layer_N/feed_forward/router        model.layers.N.mlp.gate                     router
    layer_N/feed_forward/experts/gate  model.layers.N.mlp.experts.gate_up_proj     half 0
    layer_N/feed_forward/experts/up    model.layers.N.mlp.experts.gate_up_proj     half 1
    layer_N/feed_forward/experts/down  model.layers.N.mlp.experts.down_proj        experts
    layer_N/feed_forward/shared/gate   model.layers.N.mlp.shared_experts.gate_proj linear
    layer_N/feed_forward/shared/up     model.layers.N.mlp.shared_experts.up_proj   linear
    layer_N/feed_forward/shared/down   model.layers.N.mlp.shared_experts.down_proj linear
    layer_N/feed_forward/gate          model.layers.N.mlp.gate_proj                linear
    layer_N/feed_forward/up            model.layers.N.mlp.up_proj                  linear
    layer_N/feed_forward/down          model.layers.N.mlp.down_proj                linear
    head/norm                          model.norm                                  norm
    head/table                         lm_head                                     same
"""
_UNTIED = "head/table  lm_head  same"
_BERT_NAMES = """
    embedding/tokens/table        bert.embeddings.word_embeddings                 same
    embedding/positions/table     bert.embeddings.position_embeddings             same
    embedding/types/table         bert.embeddings.token_type_embeddings           same
    embedding/norm                bert.embeddings.LayerNorm                       norm
    layer_N/attention/query       bert.encoder.layer.N.attention.self.query       linear
    layer_N/attention/key         bert.encoder.layer.N.attention.self.key         linear
    layer_N/attention/value       bert.encoder.layer.N.attention.self.value       linear
    layer_N/attention/output      bert.encoder.layer.N.attention.output.dense     linear
    layer_N/attention/norm        bert.encoder.layer.N.attention.output.LayerNorm norm
    layer_N/feed_forward/up       bert.encoder.layer.N.intermediate.dense         linear
    layer_N/feed_forward/down     bert.encoder.layer.N.output.dense               linear
    layer_N/feed_forward/norm     bert.encoder.layer.N.output.LayerNorm           norm
    head/transform                cls.predictions.transform.dense                 linear
    head/norm                     cls.predictions.transform.LayerNorm             norm
    head                          cls.predictions                                 bias
"""
_VIT_NAMES = """
    embedding/class               vit.embeddings.cls_token                            row
    embedding/positions/table     vit.embeddings.position_embeddings                  row
    embedding/patches             vit.embeddings.patch_embeddings.projection          filters
    layer_N/attention/norm        vit.layers.N.layernorm_before                       norm
    layer_N/attention/query       vit.layers.N.attention.q_proj                       linear
    layer_N/attention/key         vit.layers.N.attention.k_proj                       linear
    layer_N/attention/value       vit.layers.N.attention.v_proj                       linear
    layer_N/attention/output      vit.layers.N.attention.o_proj                       linear
    layer_N/feed_forward/norm     vit.layers.N.layernorm_after                        norm
    layer_N/feed_forward/up       vit.layers.N.mlp.fc1                                linear
    layer_N/feed_forward/down     vit.layers.N.mlp.fc2                                linear
    head/norm                     vit.layernorm                                       norm
    head/table                    classifier                                          same
    head                          classifier                                          bias
"""


class Case(NamedTuple):
    """A model of theirs, and the names of its layers in ours."""

    model: Any
    names: str


def cases() -> dict[str, Case]:
    """The models by name."""
    gpt2 = hf.GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=4, n_positions=8, **_no_gpt_dropout())
    llama = hf.LlamaConfig(**_DECODER, rope_parameters=_LLAMA3)
    qwen2 = hf.Qwen2Config(**_DECODER, tie_word_embeddings=True)
    mistral = hf.MistralConfig(**_DECODER, sliding_window=3, attn_implementation="eager")
    bert = hf.BertConfig(**_WIDE, **_NO_DROPOUT, vocab_size=VOCABULARY, max_position_embeddings=8, pad_token_id=None)
    vit = hf.ViTConfig(**_WIDE, **_NO_DROPOUT, image_size=SIDE, patch_size=PATCH, num_labels=5)
    own_heads = {**_DECODER, "num_key_value_heads": 4}
    mixtral = hf.MixtralConfig(**_DECODER, **_EAGER, num_local_experts=6, num_experts_per_tok=2)
    v2 = hf.DeepseekV2Config(
        **own_heads,
        **_LATENT,
        **_EXPERTS,
        **_EAGER,
        q_lora_rank=None,
        n_shared_experts=1,
        routed_scaling_factor=1.5,
        topk_method="group_limited_greedy",
        first_k_dense_replace=0,
    )
    v3 = hf.DeepseekV3Config(
        **own_heads,
        **_LATENT,
        **_EXPERTS,
        **_EAGER,
        q_lora_rank=12,
        n_shared_experts=2,
        routed_scaling_factor=2.5,
        first_k_dense_replace=1,
        rope_parameters=_YARN,
        max_position_embeddings=256,
    )
    return {
        "gpt2": Case(hf.GPT2LMHeadModel(gpt2), _GPT2_NAMES),
        "llama": Case(hf.LlamaForCausalLM(llama), _LLAMA_NAMES + _UNTIED),
        "qwen2": Case(hf.Qwen2ForCausalLM(qwen2), _LLAMA_NAMES),
        "mistral": Case(hf.MistralForCausalLM(mistral), _LLAMA_NAMES + _UNTIED),
        "mixtral": Case(hf.MixtralForCausalLM(mixtral), _GROUPED_NAMES + _MOE_NAMES),
        "deepseek_v2": Case(hf.DeepseekV2ForCausalLM(v2), _LATENT_NAMES + _MOE_NAMES),
        "deepseek_v3": Case(hf.DeepseekV3ForCausalLM(v3), _LATENT_NAMES + _MOE_NAMES),
        "bert": Case(hf.BertForMaskedLM(bert), _BERT_NAMES),
        "vit": Case(hf.ViTForImageClassification(vit), _VIT_NAMES),
    }


def _no_gpt_dropout() -> dict[str, Any]:
    return {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "bos_token_id": None, "eos_token_id": None}


def numbers(name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """float32 in [-1, 1) by name, as in `partita.scenarios.workloads.parameters.uniform`."""
    bits = np.random.PCG64(crc32(name.encode())).random_raw(int(np.prod(shape))) >> np.uint64(40)
    return (bits.astype(np.float32) / np.float32(2**23) - np.float32(1)).reshape(shape)


class Weight(NamedTuple):
    """A weight of ours: its name, the parameter of theirs that has it, and how ours is seen in that one."""

    name: str
    parameter: torch.Tensor
    kind: str

    def view(self, of: torch.Tensor) -> torch.Tensor:
        """Ours, in a tensor that lies as the parameter does."""
        match self.kind.split():
            case ["third", number]:
                return of.chunk(3, -1)[int(number)]
            case ["half", number]:
                return of.chunk(2, 1)[int(number)].transpose(1, 2)
            case ["experts"]:
                return of.transpose(1, 2)
            case ["heads", begin, end, size]:
                return of.view(-1, int(size), of.shape[1])[:, int(begin) : int(end)].permute(2, 0, 1)
            case ["linear"] | ["router"]:
                return of.T
            case ["row"]:
                return of[0]
            case ["filters"]:
                return of.permute(2, 3, 1, 0)
        return of


def weights_of(case: Case) -> Iterator[Weight]:
    """All weights of a model, each in our layout."""
    parameters = dict(case.model.named_parameters())
    for line in filter(str.strip, case.names.splitlines()):
        ours, theirs, kind = line.split(None, 2)
        for layer in range(2) if "_N/" in ours else [0]:
            name, there, kind = ours.replace("_N/", f"_{layer}/"), theirs.replace(".N.", f".{layer}."), kind.strip()
            if there not in parameters and f"{there}.weight" not in parameters and kind != "bias":
                continue  # a layer that this model has not
            if kind == "row" or kind.split()[0] in ("experts", "half"):
                yield Weight(name, parameters[there], kind)
                continue
            end = {"same": "", "norm": "/gain", "bias": "", "router": "/weight"}.get(kind, "/weights")
            if kind != "bias":
                yield Weight(name + end, parameters[f"{there}.weight"], kind)
            if f"{there}.bias" in parameters and kind != "same":
                bias = "/offset" if kind == "norm" else "/bias"
                yield Weight(name + bias, parameters[f"{there}.bias"], kind if kind.startswith("third") else "bias")


def answer(name: str, case: Case) -> dict[str, Any]:
    """Inputs, logits, loss and products of gradients of one model."""
    weights = list(weights_of(case))
    left = {id(p) for p in case.model.parameters()} - {id(weight.parameter) for weight in weights}
    assert not left, f"{name}: {[n for n, p in case.model.named_parameters() if id(p) in left]}"
    with torch.no_grad():
        for weight in weights:
            view = weight.view(weight.parameter)
            values = torch.tensor(numbers(weight.name, (view.numel(),))).reshape(view.shape) / 2
            view.copy_(values + 1 if weight.name.endswith("/gain") else values)
        for there, buffer in case.model.named_buffers():
            if there.endswith("e_score_correction_bias"):
                layer = there.split(".")[2]
                buffer.copy_(torch.tensor(numbers(f"layer_{layer}/feed_forward/router/bias", buffer.shape)) / 2)
    rng = np.random.default_rng(1)
    if name == "vit":
        inputs = {"images": rng.random((BATCH, SIDE, SIDE, 3)).round(3), "labels": rng.integers(0, 5, BATCH)}
        logits = case.model(pixel_values=torch.tensor(inputs["images"]).float().permute(0, 3, 1, 2)).logits
    else:
        inputs = {k: rng.integers(0, VOCABULARY, (BATCH, SEQUENCE)) for k in ("tokens", "labels")}
        inputs["labels"][0, 1] = -1
        logits = case.model(input_ids=torch.tensor(inputs["tokens"])).logits
    labels = torch.tensor(inputs["labels"]).flatten()
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels, ignore_index=-1)
    loss.backward()
    slopes = {}
    for weight in weights:
        assert weight.parameter.grad is not None
        slope = weight.view(weight.parameter.grad).double().numpy().reshape(-1)
        slopes[weight.name] = float(slope @ numbers(f"{weight.name}/probe", slope.shape))
    return {
        "config": case.model.config.to_diff_dict(),
        "inputs": {key: value.tolist() for key, value in inputs.items()},
        "logits": np.round(logits.detach().numpy().astype(float), 7).tolist(),
        "loss": loss.item(),
        "gradients": slopes,
    }


def main() -> None:
    """Writes the file that is named on the command line."""
    made = {"versions": {"transformers": hf.__version__, "torch": torch.__version__}}
    made |= {name: answer(name, case) for name, case in cases().items()}
    lines = [f'"{name}": {json.dumps(values)}' for name, values in made.items()]
    Path(sys.argv[1]).write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
