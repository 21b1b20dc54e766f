"""The families of kernels by the name of their part in `[fits]`; a class is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from .kernel_rows import KernelRows

FAMILIES: Mapping[str, str] = {
    "low_bit_products": "low_bit:LowBitProducts",
    "expert_layers": "experts:ExpertLayers",
    "products_fp32": "products_fp32:Fp32ProductRows",
    "convolutions": "convolutions:Convolutions",
    "elementwise_fp32": "elementwise:ElementwiseRows",
    "prefill_attention": "prefill_attention:PrefillRows",
    "encoder_attention": "encoder_attention:EncoderRows",
    "decode_attention": "decode_attention:DecodeRows",
    "latent_prefill": "latent_attention:LatentPrefillRows",
    "latent_decode": "latent_attention:LatentDecodeRows",
}
"""by part the module and class of its rows, as in {"decode_attention": "decode_attention:DecodeRows"}"""


def family_of(part: str) -> type[KernelRows]:
    """The family of a part of `FAMILIES`."""
    module, name = FAMILIES[part].split(":")
    family: type[KernelRows] = getattr(import_module(f".{module}", __package__), name)
    return family
