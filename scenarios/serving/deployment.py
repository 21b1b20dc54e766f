"""A language model on the GPUs of a cluster: how it is spread, the types of its weights, what fits in memory.

    Deployment(llama_70b, cluster, tp=4, weights="fp8")
        gpus 4, weight_bytes 18e9 a GPU, cache_bytes 81,920 a token and GPU, most_sequences(9216) 68

Attention is cut over `tp` GPUs and repeated `attention_dp` times, each replica with sequences of its own. All GPUs
share the experts: `expert_tp` cut each expert, `expert_ep` share them out.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import Attribute, field, frozen

from ...devices.cluster import Cluster
from ...devices.device import Device
from ...devices.spec import DeviceSpec
from ...devices.timing.costs.product_costs import PRODUCT_DTYPES
from ...devices.timing.fits.kernels.experts import DTYPES as EXPERT_DTYPES
from ...errors import InvalidArgumentError
from ..models.llama import LlamaModel
from ..models.moe import MoeModel

CACHE_TYPES = ("bf16", "fp8")
BITS = {
    "bf16": 16.0,
    "fp8": 8.0,
    "fp8_block": 8.0,
    "nvfp4": 4.5,  # an 8-bit scale for 16 values
    "w4a16_mxfp4": 4.25,  # for 32
    "w4a8_mxfp4_mxfp8": 4.25,
    "int8": 8.0,
    "int8_weights": 8.0,
    "int4_weights": 4.25,  # a 16-bit scale and zero for 128
}
"""bits of a weight, scales included"""
MEMORY_SHARE = 0.9
"""of a GPU's memory that frameworks take for weights, cache and activations: the default of vLLM"""
ACTIVATION_BYTES = 2 << 30
"""of it for activations, CUDA graphs and communication: assumed"""


class _OneOf:
    """A validator: InvalidArgumentError for a text that is none of those known."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, owner: object, attribute: Attribute[str], value: str) -> None:
        if value not in self._known:
            raise InvalidArgumentError(
                f"Deployment: {attribute.name}={value!r} must be one of {', '.join(self._known)}"
            )


def _positive(owner: object, attribute: Attribute[int], value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgumentError(f"Deployment: {attribute.name}={value!r} is no positive number; give 1 or more")


@frozen
class Deployment:
    """A model and how it is served; InvalidArgumentError for what does not divide or does not fit the cluster.

    weights, expert_weights    types of `product_cost` and of `expert_layer_cost`; the head stays in bf16
    cache                      type of keys and values that are kept
    windowed_layers            layers whose attention sees the model's window only; None: all, if there is a window
    """

    model: LlamaModel
    cluster: Cluster
    tp: int = field(default=1, validator=_positive, kw_only=True)
    attention_dp: int = field(default=1, validator=_positive, kw_only=True)
    expert_tp: int = field(default=1, validator=_positive, kw_only=True)
    expert_ep: int = field(default=1, validator=_positive, kw_only=True)
    weights: str = field(default="bf16", validator=_OneOf(PRODUCT_DTYPES), kw_only=True)
    expert_weights: str = field(default="bf16", validator=_OneOf(EXPERT_DTYPES), kw_only=True)
    cache: str = field(default="bf16", validator=_OneOf(CACHE_TYPES), kw_only=True)
    windowed_layers: int | None = field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.model.heads % self.tp:
            raise InvalidArgumentError(
                f"Deployment: tp={self.tp} does not divide heads={self.model.heads}; "
                "repeat attention with attention_dp, which leaves heads whole"
            )
        if isinstance(self.model, MoeModel):
            if self.model.experts % self.expert_ep:
                raise InvalidArgumentError(
                    f"Deployment: expert_ep={self.expert_ep} does not divide experts={self.model.experts}"
                )
            if self.expert_tp * self.expert_ep > self.gpus:
                raise InvalidArgumentError(
                    f"Deployment: expert_tp * expert_ep = {self.expert_tp * self.expert_ep} is more than the "
                    f"tp * attention_dp = {self.gpus} GPUs"
                )
        if len(self._of_cluster()) < self.gpus:
            raise InvalidArgumentError(
                f"Deployment: tp * attention_dp = {self.gpus} GPUs, and the cluster has {len(self._of_cluster())}"
            )

    def _of_cluster(self) -> list[Device]:
        return [device for device in self.cluster if device.spec.launches_kernels]

    @property
    def gpus(self) -> int:
        """GPUs that serve one deployment."""
        return self.tp * self.attention_dp

    @property
    def ranks(self) -> list[str]:
        """The names of its GPUs, the first of the cluster."""
        return [device.name for device in self._of_cluster()[: self.gpus]]

    @property
    def spec(self) -> DeviceSpec:
        """The model of GPU, of which all are."""
        return self._of_cluster()[0].spec

    @property
    def experts(self) -> MoeModel | None:
        """The model with its experts; None for one without."""
        return self.model if isinstance(self.model, MoeModel) else None

    @property
    def dense_layers(self) -> int:
        """Layers with a feed-forward network that all tokens pass."""
        return self.model.layers if self.experts is None else self.experts.dense_layers

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values on a GPU: one at least, as GPUs repeat what they cannot share out."""
        return max(1, self.model.kv_heads // self.tp)

    @property
    def weight_bytes(self) -> float:
        """Bytes of weights on the GPU with most of them."""
        model, shared = self.model, 0.0
        feed_forward = self.dense_layers * 3 * model.hidden * model.intermediate
        if self.experts is not None:
            units = self.experts.expert_layers * 3 * model.hidden
            feed_forward += units * self.experts.shared_intermediate
            shared = units * self.experts.expert_intermediate * self.experts.experts / (self.expert_tp * self.expert_ep)
        cut = (model.layers * model.attention_parameters + feed_forward) / self.tp
        embeddings = model.vocabulary * model.hidden * (1 if model.tied else 2) / self.tp
        return (cut * BITS[self.weights] + shared * BITS[self.expert_weights] + embeddings * BITS["bf16"]) / 8

    def cache_bytes(self, tokens: int) -> float:
        """Bytes that a sequence of so many tokens keeps on a GPU, in all layers."""
        width = BITS[self.cache] / 8
        if self.experts is not None and self.experts.latent is not None:
            row = self.experts.latent.kv_rank + self.experts.latent.rope_size
            return self.model.layers * row * width * tokens
        windowed = self.windowed
        seen = windowed * min(tokens, self.model.window) + (self.model.layers - windowed) * tokens
        return 2 * self.kv_heads * self.model.head_size * width * seen

    @property
    def windowed(self) -> int:
        """Layers with a window."""
        if not self.model.window:
            return 0
        return self.model.layers if self.windowed_layers is None else self.windowed_layers

    def most_sequences(self, tokens: int) -> float:
        """How many sequences of so many tokens a replica has memory for, 1 at least (a fraction: a mean).

        InvalidArgumentError where not even the weights fit, with how much they take.
        """
        room = MEMORY_SHARE * self.spec.memory_bytes - ACTIVATION_BYTES - self.weight_bytes
        if room <= 0:
            raise InvalidArgumentError(
                f"Deployment: {self.weight_bytes / 1e9:.1f} GB of weights a GPU do not fit in the "
                f"{self.spec.memory_bytes / 1e9:.1f} GB of {self.spec.name} beside activations; use more GPUs or a "
                "narrower type"
            )
        return max(1.0, room / self.cache_bytes(tokens))
