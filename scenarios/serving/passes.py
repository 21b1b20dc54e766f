"""The kernels of one forward pass on one GPU of a deployment, and their times by part, in ns.

    token_pass(deployment, sequences=16, context=4096)     one token of each of 16 sequences
    prompt_pass(deployment, tokens=8192)                   a prompt from its beginning

    {"projections": 1.9e6, "attention": 0.8e6, "feed forward": 2.4e6, "collectives": 0.9e6, "norms": 0.5e6, "head": ...}

All layers of a kind take the same time. GPUs that share attention sum up its outputs and those of the feed-forward
network: by NCCL, or, if that is faster and all are in one machine, in one kernel in which each reads the buffers of all
others, as frameworks do with small ones. Replicas of attention gather their tokens for the experts, and scatter what
comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, inf

from ...devices.catalog import link_spec
from ...devices.timing.collectives.collective_time import collective_time
from ...devices.timing.costs.attention_costs import (
    decode_attention_cost,
    latent_attention_cost,
    prefill_attention_cost,
)
from ...devices.timing.costs.expert_costs import expert_layer_cost
from ...devices.timing.costs.product_costs import product_cost
from ...devices.timing.costs.source import OpCost
from ...devices.timing.fits.calibration import Calibration
from ...graph.device_name import parse_full_name
from ..models.moe import LatentAttention, MoeModel
from .deployment import Deployment

ELEMENT_BYTES = 2
"""of an activation"""
NORM_STREAMS = 6
"""times that the norms and residual sums of a layer read or write all activations"""
NORM_KERNELS = 2
"""of a layer: each a residual sum and the norm after it"""

ONE_KERNEL_NS, ONE_KERNEL_SHARE = 4_000, 0.6
"""of an all-reduce in one kernel: the least time, and the share of the link's bandwidth; both assumed"""

PassTimes = Mapping[str, float]


class _Pass:
    """Sums up the kernels of a pass of `rows` tokens of `sequences` on one replica of attention."""

    def __init__(self, of: Deployment, rows: float, sequences: float, calibration: Calibration | None) -> None:
        self.of, self.rows, self.sequences, self.calibration = of, rows, sequences, calibration
        self.times: dict[str, float] = {}

    def add(self, part: str, runs: float, time_ns: float) -> None:
        """So many runs of a kernel."""
        self.times[part] = self.times.get(part, 0.0) + runs * time_ns

    def product(self, part: str, runs: float, n: float, k: float, dtype: str | None = None, rows: float = 0) -> None:
        """Products of (rows, k) by (k, n); the rows are those of the pass unless given."""
        sizes = {"m": ceil(rows or self.rows), "n": ceil(n), "k": ceil(k)}
        cost = product_cost(self.of.spec, **sizes, dtype=dtype or self.of.weights, calibration=self.calibration)
        self.add(part, runs, cost.time_ns)

    def collective(self, kind: str, runs: float, gpus: int, rows: float) -> None:
        """Collectives over the activations of so many tokens; none on one GPU."""
        if gpus > 1 and runs:
            size, ranks = ceil(rows * self.of.model.hidden * ELEMENT_BYTES), self.of.ranks[:gpus]
            by_nccl = collective_time(kind, ranks, size, self.of.cluster, calibration=self.calibration).time_ns
            in_one = _in_one_kernel_ns(self.of, ranks, size) if kind == "all_reduce" else inf
            self.add("collectives", runs, min(by_nccl, in_one))

    def done(self) -> PassTimes:
        """The times, with what is the same in all passes: networks, norms, the head, collectives."""
        of, model = self.of, self.of.model
        self.product("feed forward", of.dense_layers, 2 * model.intermediate / of.tp, model.hidden)
        self.product("feed forward", of.dense_layers, model.hidden, model.intermediate / of.tp)
        if of.experts is not None:
            self._experts(of.experts)
        self.collective("all_reduce", model.layers + of.dense_layers, of.tp, self.rows)
        moved = NORM_STREAMS * self.rows * model.hidden * ELEMENT_BYTES
        bandwidth = of.spec.achieved_bytes_per_s
        self.add("norms", model.layers, NORM_KERNELS * of.spec.kernel_floor_ns + moved * 1e9 / bandwidth)
        self.product("head", 1, model.vocabulary / of.tp, model.hidden, "bf16", self.sequences)
        return self.times

    def _experts(self, model: MoeModel) -> None:
        of, layers, tokens = self.of, model.expert_layers, self.rows * self.of.attention_dp
        cost = expert_layer_cost(
            of.spec,
            tokens=ceil(tokens),
            hidden=model.hidden,
            intermediate=model.expert_intermediate,
            experts=model.experts,
            top_k=model.topk,
            tp=of.expert_tp,
            ep=of.expert_ep,
            dtype=of.expert_weights,
            calibration=self.calibration,
        )
        self.add("experts", layers, cost.time_ns)
        self.product("router", layers, model.experts, model.hidden, "bf16")
        if model.shared_intermediate:
            self.product("shared expert", layers, 2 * model.shared_intermediate / of.tp, model.hidden)
            self.product("shared expert", layers, model.hidden, model.shared_intermediate / of.tp)
        sharing = of.expert_tp * of.expert_ep
        if of.attention_dp == 1:
            self.collective("all_reduce", layers, max(sharing, of.tp), tokens)
        else:
            self.collective("all_gather", layers, of.gpus, tokens)
            self.collective("reduce_scatter", layers, of.gpus, tokens)

    def latent_attention(self, phase: str, batch: int, tokens: int) -> None:
        """Latent attention of all layers."""
        of, layers = self.of, self.of.model.layers
        cost = latent_attention_cost(
            of.spec,
            phase=phase,
            batch=batch,
            tokens=tokens,
            heads=of.model.heads // of.tp,
            cache_dtype=of.cache,
            calibration=self.calibration,
        )
        self.add("attention", layers, cost.time_ns)

    def attention(self, cost_of: Callable[[int], OpCost]) -> None:
        """Attention of all layers; `cost_of` says what a layer costs with a window, 0 for none."""
        of = self.of
        for layers, window in ((of.model.layers - of.windowed, 0), (of.windowed, of.model.window)):
            if layers:
                self.add("attention", layers, cost_of(window).time_ns)

    def projections(self) -> None:
        """What queries, keys and values are made by, and the output of attention."""
        of, model = self.of, self.of.model
        latent = _latent(of)
        if latent is None:
            width = (model.heads / of.tp + 2 * of.kv_heads) * model.head_size
            self.product("projections", model.layers, width, model.hidden)
            self.product("projections", model.layers, model.hidden, model.heads * model.head_size / of.tp)
            return
        heads, rank = model.heads / of.tp, latent.q_rank or model.hidden
        self.product("projections", model.layers, latent.q_rank + latent.kv_rank + latent.rope_size, model.hidden)
        self.product("projections", model.layers, heads * latent.query_size, rank)
        self.product("projections", model.layers, model.hidden, heads * latent.value_size)


def _in_one_kernel_ns(of: Deployment, ranks: Sequence[str], size_bytes: int) -> float:
    """Time of an all-reduce in one kernel, by the links between GPUs of one machine; infinite without such links."""
    machines = {parse_full_name(rank).task_name() for rank in ranks}
    if len(machines) > 1 or of.spec.peer_link is None:
        return inf
    bandwidth = link_spec(of.spec.peer_link).bandwidth_bytes_per_s * ONE_KERNEL_SHARE
    return ONE_KERNEL_NS + (len(ranks) - 1) * size_bytes * 1e9 / bandwidth


def _latent(of: Deployment) -> LatentAttention | None:
    return None if of.experts is None else of.experts.latent


def token_pass(
    of: Deployment, *, sequences: float, context: float, calibration: Calibration | None = None
) -> PassTimes:
    """One further token of each of so many sequences on a replica, which have a `context` of tokens on average."""
    of_pass, model, latent = _Pass(of, sequences, sequences, calibration), of.model, _latent(of)
    of_pass.projections()
    batch, tokens, heads = ceil(sequences), ceil(context), model.heads // of.tp
    if latent is not None:
        of_pass.latent_attention("decode", batch, tokens)
        # Queries and outputs in the space of the narrow rows: a product for each head.
        width = heads * latent.kv_rank
        of_pass.product("projections", model.layers, width, latent.nope_size, "bf16")
        of_pass.product("projections", model.layers, latent.value_size, width, "bf16")
        return of_pass.done()
    of_pass.attention(
        lambda window: decode_attention_cost(
            of.spec,
            batch=batch,
            context=tokens,
            heads=heads,
            kv_heads=of.kv_heads,
            head_dim=model.head_size,
            window=window,
            cache_dtype=of.cache,
            calibration=calibration,
        )
    )
    return of_pass.done()


def prompt_pass(of: Deployment, *, tokens: int, calibration: Calibration | None = None) -> PassTimes:
    """A prompt of so many tokens from its beginning, alone on a replica of attention."""
    of_pass, model, latent = _Pass(of, tokens, 1, calibration), of.model, _latent(of)
    of_pass.projections()
    heads = model.heads // of.tp
    if latent is not None:
        made = heads * (latent.nope_size + latent.value_size)
        of_pass.product("projections", model.layers, made, latent.kv_rank)
        of_pass.latent_attention("prefill", 1, tokens)
        return of_pass.done()
    of_pass.attention(
        lambda window: prefill_attention_cost(
            of.spec,
            batch=1,
            seq_len=tokens,
            heads=heads,
            kv_heads=of.kv_heads,
            head_dim=model.head_size,
            window=window,
            cache_dtype=of.cache,
            calibration=calibration,
        )
    )
    return of_pass.done()
