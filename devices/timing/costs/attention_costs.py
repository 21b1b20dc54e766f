"""Costs of the attention operators of serving frameworks, by the fits of such operators.

    prefill_attention_cost(device_spec("H100-SXM"), batch=4, seq_len=4096, heads=32, kv_heads=8, head_dim=128)
    decode_attention_cost(device_spec("H100-SXM"), batch=64, context=4096, heads=32, kv_heads=8, head_dim=128)
    latent_attention_cost(device_spec("B200-SXM"), phase="decode", batch=64, tokens=4096, heads=16)
                                                                                OpCost(..., provenance="fitted")

They are replays of a CUDA graph of the whole operator of a layer, on one GPU: its share of the heads is what counts.
`attention_cost` is another thing: the bare flash kernel of training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....errors import InvalidArgumentError
from ...spec import DeviceSpec
from ..fits.calibration import Calibration
from ..fits.kernels.decode_attention import DecodeRows
from ..fits.kernels.encoder_attention import EncoderRows
from ..fits.kernels.kernel_rows import KernelRows
from ..fits.kernels.latent_attention import LatentDecodeRows, LatentPrefillRows
from ..fits.kernels.prefill_attention import PrefillRows
from .kernel_costs import kernel_cost
from .source import OpCost

PHASES: Mapping[str, tuple[type[KernelRows], str]] = {
    "prefill": (LatentPrefillRows, "seq_len"),
    "decode": (LatentDecodeRows, "context"),
}
"""the family of a phase of latent attention, and its column of tokens"""


def prefill_attention_cost(
    spec: DeviceSpec,
    *,
    batch: int,
    seq_len: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    window: int = 0,
    causal: bool = True,
    dtype: str = "bf16",
    cache_dtype: str | None = None,
    calibration: Calibration | None = None,
) -> OpCost:
    """Time of the attention of one layer in a prefill: `batch` sequences of `seq_len` new tokens, with an empty cache.

    Includes the rotary embedding of queries and keys and the write of keys and values to the paged cache; the
    projections before and after it are products of their own. `window` 0 is none, else a query sees that many tokens.
    Without `causal` it is an encoder's: no mask, no rotary embedding, no cache. `dtype` is that of the arithmetic,
    "bf16", "fp16" (as bf16) or "fp8", `cache_dtype` that of the cache, None the same. Raises InvalidArgumentError for
    sizes below 1, heads that kv_heads do not divide and types that the GPU lacks, and UnknownCost for a CPU and where
    no device of the calibration (None: the catalog's) has such a fit.
    """
    if not causal:
        _check_encoder(heads, kv_heads, window, cache_dtype)
        texts = {"dtype": [_types(spec, dtype, None).dtype]}
        sizes = {"batch": batch, "seq_len": seq_len, "heads": heads, "head_dim": head_dim}
        return kernel_cost(spec, EncoderRows(texts, _column(sizes)), calibration)
    _check_heads(heads, kv_heads)
    sizes = {"batch": batch, "seq_len": seq_len, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    sizes["window"] = _seen(window, seq_len)
    return kernel_cost(spec, PrefillRows(_types(spec, dtype, cache_dtype).texts, _column(sizes)), calibration)


def decode_attention_cost(
    spec: DeviceSpec,
    *,
    batch: int,
    context: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    window: int = 0,
    dtype: str = "bf16",
    cache_dtype: str | None = None,
    calibration: Calibration | None = None,
) -> OpCost:
    """Time of the attention of one layer in a decode step: one new token of each of `batch` sequences.

    `context` tokens of each sequence are in the cache, the new one among them; with a `window` above 0 that many of
    them are seen. Includes the rotary embedding, the write of the new keys and values, and the merge of the parts that
    the cache is split into; no projections. `cache_dtype` decides the bytes that are read. Types and errors as of
    `prefill_attention_cost`.
    """
    _check_heads(heads, kv_heads)
    sizes = {"batch": batch, "context": context, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    sizes["window"] = _seen(window, context)
    return kernel_cost(spec, DecodeRows(_types(spec, dtype, cache_dtype).texts, _column(sizes)), calibration)


def latent_attention_cost(
    spec: DeviceSpec,
    *,
    phase: str,
    batch: int,
    tokens: int,
    heads: int,
    dtype: str = "bf16",
    cache_dtype: str | None = None,
    calibration: Calibration | None = None,
) -> OpCost:
    """Time of the multi-head latent attention of one layer with the sizes of DeepSeek V2 and V3.

    `phase` "prefill": `batch` sequences of `tokens` new tokens, heads of 192 (queries, keys) and 128 (values) expanded
    from a latent of 512. "decode": one new token of each sequence with `tokens` tokens in its cache, the new one among
    them; the expansion is absorbed into queries, and all heads read one vector of 576 a token. `heads` are those of
    this GPU. Includes the rotary embedding and the cache's write; no projections, the absorbed ones neither. Types and
    errors as of `prefill_attention_cost`.
    """
    if phase not in PHASES:
        raise InvalidArgumentError(f"phase {phase!r} is not known; it must be one of {', '.join(PHASES)}")
    family, column = PHASES[phase]
    sizes = {"batch": batch, column: tokens, "heads": heads}
    return kernel_cost(spec, family(_types(spec, dtype, cache_dtype).texts, _column(sizes)), calibration)


class _Types(NamedTuple):
    """The types of a run as families know them."""

    dtype: str
    cache: str

    @property
    def texts(self) -> dict[str, list[str]]:
        """As columns of one row."""
        return {"dtype": [self.dtype], "cache": [self.cache]}


def _types(spec: DeviceSpec, dtype: str, cache_dtype: str | None) -> _Types:
    """fp16 stands for bf16; InvalidArgumentError for arithmetic that the device has no units for."""
    rates = spec.peak_flops_per_s
    if spec.launches_kernels and dtype not in rates:
        raise InvalidArgumentError(f"{spec.name} has no units for {dtype!r}; it has {', '.join(rates)}")
    given = (dtype, dtype if cache_dtype is None else cache_dtype)
    return _Types(*("bf16" if text == "fp16" else text for text in given))


def _seen(window: int, tokens: int) -> int:
    """Tokens that a query sees at most."""
    if window < 0:
        raise InvalidArgumentError(f"window = {window} must be 0 (none) or the tokens that are seen")
    return min(window, tokens) if window else tokens


def _check_heads(heads: int, kv_heads: int) -> None:
    if kv_heads >= 1 and heads % kv_heads:
        raise InvalidArgumentError(f"heads = {heads} must be a multiple of kv_heads = {kv_heads}: groups share keys")


def _check_encoder(heads: int, kv_heads: int, window: int, cache_dtype: str | None) -> None:
    if heads != kv_heads:
        raise InvalidArgumentError(f"kv_heads = {kv_heads} without causal must be heads = {heads}, as was measured")
    if window or cache_dtype is not None:
        raise InvalidArgumentError("attention without causal has neither window nor cache; leave both out")


def _column(sizes: Mapping[str, int]) -> dict[str, list[int]]:
    return {name: [size] for name, size in sizes.items()}
