"""Files of attention in serving frameworks: attention_context.csv, ..._generation.csv, ..._encoder.csv, mla_....csv.

    system,batch_size,isl,num_heads,num_key_value_heads,head_dim,window_size,attn_dtype,kv_cache_dtype,latency_ms
    h100_sxm,4,4096,32,8,128,0,bfloat16,fp8,0.412

A window of 0 is none: a query sees all tokens before it. In decode `step` tokens are in the cache before the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....graph.arrays import Numbers
from ...timing.fits.kernels.decode_attention import DecodeRows
from ...timing.fits.kernels.encoder_attention import EncoderRows
from ...timing.fits.kernels.kernel_rows import KernelRows
from ...timing.fits.kernels.latent_attention import LatentDecodeRows, LatentPrefillRows
from ...timing.fits.kernels.prefill_attention import PrefillRows
from ..kernel_file import KernelFile
from ..validation.rows import COUNT, TEXT, WHOLE, MeasuredRows

SHORT = {"bfloat16": "bf16"}


def _types(lines: MeasuredRows, *columns: str) -> list[tuple[str, ...]]:
    return [tuple(SHORT.get(text, text) for text in lines.texts[name]) for name in columns]


def _seen(lines: MeasuredRows, tokens: Numbers) -> Numbers:
    """Tokens that a query sees at most."""
    window = lines.keys["window_size"]
    return np.where(window > 0, np.minimum(window, tokens), tokens)


def _of_heads(lines: MeasuredRows) -> dict[str, Any]:
    keys = lines.keys
    return {"heads": keys["num_heads"], "kv_heads": keys["num_key_value_heads"], "head_dim": keys["head_dim"]}


def prefill_rows(lines: MeasuredRows) -> PrefillRows:
    """Rows of attention_context.csv."""
    dtype, cache = _types(lines, "attn_dtype", "kv_cache_dtype")
    tokens = lines.keys["isl"]
    sizes = {"batch": lines.keys["batch_size"], "seq_len": tokens, **_of_heads(lines), "window": _seen(lines, tokens)}
    return PrefillRows({"dtype": dtype, "cache": cache}, sizes)


def decode_rows(lines: MeasuredRows) -> DecodeRows:
    """Rows of attention_generation.csv."""
    dtype, cache = _types(lines, "attn_dtype", "kv_cache_dtype")
    tokens = lines.keys["step"] + 1
    sizes = {"batch": lines.keys["batch_size"], "context": tokens, **_of_heads(lines), "window": _seen(lines, tokens)}
    return DecodeRows({"dtype": dtype, "cache": cache}, sizes)


def encoder_rows(lines: MeasuredRows) -> EncoderRows:
    """Rows of attention_encoder.csv."""
    keys = lines.keys
    sizes = {"batch": keys["batch_size"], "seq_len": keys["isl"], "heads": keys["num_heads"]}
    (dtype,) = _types(lines, "attn_dtype")
    return EncoderRows({"dtype": dtype}, {**sizes, "head_dim": keys["head_dim"]})


def latent_prefill_rows(lines: MeasuredRows) -> LatentPrefillRows:
    """Rows of mla_context.csv."""
    dtype, cache = _types(lines, "mla_dtype", "kv_cache_dtype")
    keys = lines.keys
    sizes = {"batch": keys["batch_size"], "seq_len": keys["isl"], "heads": keys["num_heads"]}
    return LatentPrefillRows({"dtype": dtype, "cache": cache}, sizes)


def latent_decode_rows(lines: MeasuredRows) -> LatentDecodeRows:
    """Rows of mla_generation.csv."""
    dtype, cache = _types(lines, "mla_dtype", "kv_cache_dtype")
    keys = lines.keys
    sizes = {"batch": keys["batch_size"], "context": keys["step"] + 1, "heads": keys["num_heads"]}
    return LatentDecodeRows({"dtype": dtype, "cache": cache}, sizes)


def _file(
    name: str, family: type[KernelRows], keys: Sequence[str], rows_of: Callable[[MeasuredRows], KernelRows]
) -> KernelFile:
    """A file of aiconfigurator's measurements, in milliseconds; types are texts, all other columns whole numbers."""
    kinds = {key: TEXT if key.endswith("dtype") else WHOLE if key in ("step", "window_size") else COUNT for key in keys}
    return KernelFile(name, f"{name}.csv", family, "system", kinds, "latency_ms", 1e6, rows_of)


HEADS = ("num_heads", "num_key_value_heads", "head_dim", "window_size", "attn_dtype", "kv_cache_dtype")
LATENT = ("num_heads", "batch_size", "mla_dtype", "kv_cache_dtype")
ATTENTION_FILES = (
    _file("attention_context", PrefillRows, ("batch_size", "isl", *HEADS), prefill_rows),
    _file("attention_generation", DecodeRows, ("batch_size", "step", *HEADS), decode_rows),
    _file(
        "attention_encoder",
        EncoderRows,
        ("batch_size", "isl", "num_heads", "head_dim", "attn_dtype"),
        encoder_rows,
    ),
    _file("mla_context", LatentPrefillRows, ("isl", *LATENT), latent_prefill_rows),
    _file("mla_generation", LatentDecodeRows, ("step", *LATENT), latent_decode_rows),
)
