"""The ops that transformers are made of and TensorFlow lacks: attention, norms, activations and rotary positions.

`docs/own_ops.md` says what each computes. U is the type of the numbers that the gradient reads again: double where T is
double, else float.
"""

from __future__ import annotations

_BAND = """
    attr T: {bfloat16, half, float, double}
    attr U: {float, double} = float
    attr causal: bool = false                # a query sees no key behind its own position
    attr scale: float = 0.0                  # of the products of queries and keys; 0: 1 / sqrt(d)
    attr window: int >= 0 = 0                # a query sees keys less than so many positions away; 0: all
    attr query_offset: int >= 0 = 0          # the position of the first query
    attr key_offset: int >= 0 = 0            # the position of the first key
    attr sequence_first: bool = false        # the axes of all tensors of rank 4 begin with s, b in place of b, s
"""

_FLASH_ATTENTION = f"""
    Partita>FlashAttention
    input query: T                           # [b, s, heads, d]
    input key: T                             # [b, t, kv_heads, d]
    input value: T                           # [b, t, kv_heads, e]
    output output: T                         # [b, s, heads, e]
    output logsumexp: U                      # [b, heads, s], of the scaled products
{_BAND}"""

_FLASH_ATTENTION_GRAD = f"""
    Partita>FlashAttentionGrad
    input query: T
    input key: T
    input value: T
    input output: T
    input logsumexp: U
    input d_output: T
    input d_logsumexp: Nd_logsumexp * U      # none where nothing depends on logsumexp
    output d_query: T
    output d_key: T
    output d_value: T
    attr Nd_logsumexp: int >= 0 = 1          # at most 1
{_BAND}"""

_CACHED_ATTENTION = """
    Partita>CachedAttention
    input query: T                           # [b, heads, d]
    input rows: N * T                        # keys [b, kv_heads, t, d], and values [b, kv_heads, t, e]
    input position: int32                    # a scalar: rows behind it are not seen
    output output: T                         # [b, heads, e]
    attr N: int >= 1                         # 1: the first value_size elements of a key are its value
    attr T: {bfloat16, half, float, double}
    attr scale: float = 0.0                  # of the products of queries and keys; 0: 1 / sqrt(d)
    attr window: int >= 0 = 0                # how many rows are seen, that at the position included; 0: all
    attr value_size: int >= 0 = 0            # 0: all of a row
"""

_RMS_NORM = """
    Partita>RMSNorm
    input x: T                               # [..., n]
    input gain: G                            # [n]
    output y: T                              # x * inverse_rms * gain
    output inverse_rms: U                    # [...]: 1 / sqrt(mean of x^2 + epsilon)
    attr T: {bfloat16, half, float, double}
    attr G: {bfloat16, half, float, double}
    attr U: {float, double} = float
    attr epsilon: float = 1e-6
"""

_RMS_NORM_GRAD = """
    Partita>RMSNormGrad
    input x: T
    input gain: G
    input inverse_rms: U
    input d_y: T
    output d_x: T
    output d_gain: G
    attr T: {bfloat16, half, float, double}
    attr G: {bfloat16, half, float, double}
    attr U: {float, double} = float
"""

_LAYER_NORM = """
    Partita>LayerNorm
    input x: T                               # [..., n]
    input gain: G                            # [n]
    input offset: G                          # [n]
    output y: T                              # (x - mean) * inverse_deviation * gain + offset
    output mean: U                           # [...]
    output inverse_deviation: U              # [...]: 1 / sqrt(mean of (x - mean)^2 + epsilon)
    attr T: {bfloat16, half, float, double}
    attr G: {bfloat16, half, float, double}
    attr U: {float, double} = float
    attr epsilon: float = 1e-5
"""

_LAYER_NORM_GRAD = """
    Partita>LayerNormGrad
    input x: T
    input gain: G
    input mean: U
    input inverse_deviation: U
    input d_y: T
    output d_x: T
    output d_gain: G
    output d_offset: G
    attr T: {bfloat16, half, float, double}
    attr G: {bfloat16, half, float, double}
    attr U: {float, double} = float
"""

_GELU = """
    Partita>Gelu
    input x: T
    output y: T                              # x times the normal distribution function of x
    attr T: {bfloat16, half, float, double}
    attr approximate: bool = false           # by tanh
"""

_GELU_GRAD = """
    Partita>GeluGrad
    input x: T
    input d_y: T
    output d_x: T
    attr T: {bfloat16, half, float, double}
    attr approximate: bool = false
"""

_GATED_SILU = """
    Partita>GatedSilu
    input gate: T
    input up: T
    output y: T                              # gate * sigmoid(gate) * up
    attr T: {bfloat16, half, float, double}
"""

_GATED_SILU_GRAD = """
    Partita>GatedSiluGrad
    input gate: T
    input up: T
    input d_y: T
    output d_gate: T
    output d_up: T
    attr T: {bfloat16, half, float, double}
"""

_ROTARY = """
    Partita>Rotary
    input x: T                               # [b, s, heads, d]
    input cosines: U                         # [s, r / 2]: of the angle of each pair at each position
    input sines: U                           # [s, r / 2]
    output y: T                              # the first r of d elements turned in pairs, the others as they are
    attr T: {bfloat16, half, float, double}
    attr U: {bfloat16, half, float, double}
    attr interleaved: bool = false           # pairs are neighbours (0, 1), (2, 3), else i and i + r / 2
    attr inverse: bool = false               # turns back
    attr sequence_first: bool = false        # x begins with s, b in place of b, s
"""

DECLARATIONS = (
    *(_CACHED_ATTENTION, _FLASH_ATTENTION, _FLASH_ATTENTION_GRAD, _GATED_SILU, _GATED_SILU_GRAD, _GELU, _GELU_GRAD),
    *(_LAYER_NORM, _LAYER_NORM_GRAD, _RMS_NORM, _RMS_NORM_GRAD, _ROTARY),
)
"""in words (`declaration.py`)"""

HOST_ARGS: dict[str, frozenset[str]] = {
    "Partita>CachedAttention": frozenset({"position"}),
    "Partita>FlashAttention": frozenset(),
    "Partita>FlashAttentionGrad": frozenset(),
    "Partita>GatedSilu": frozenset(),
    "Partita>GatedSiluGrad": frozenset(),
    "Partita>Gelu": frozenset(),
    "Partita>GeluGrad": frozenset(),
    "Partita>LayerNorm": frozenset(),
    "Partita>LayerNormGrad": frozenset(),
    "Partita>RMSNorm": frozenset(),
    "Partita>RMSNormGrad": frozenset(),
    "Partita>Rotary": frozenset(),
}
"""the arguments in host memory, by op, on devices of every kind"""
