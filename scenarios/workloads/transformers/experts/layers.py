"""The feed-forward layer of a mixture of experts: routed experts, and one that all tokens go through.

    y = sum of weight_e * down_e(silu(gate_e x) * up_e x) over the chosen experts e, + shared(x)

Experts are shared out over "ep" and not cut by tensor parallelism: the ranks of tp have the same experts, and each
sends rows of its own. With sequence parallelism these are the rows that it has; else it takes an equal part of the rows
that all have, perhaps with rows of zeros, and a sum puts results together. So gradients of routers and experts are
parts of a sum over tp. The shared expert is cut as any dense feed-forward layer is.
"""

from __future__ import annotations

from math import sqrt

from .....graph.attrs import encode
from .....graph.builder.handles import Tensor
from ....models.moe import MoeModel
from ..feed_forward import gated_silu, swiglu_layers
from ..network import RankNetwork
from .dispatch import Dispatch, Dispatched
from .router import route


def experts_layers(network: RankNetwork, model: MoeModel, x: Tensor) -> Tensor:
    """The layer of own rows x [own rows, hidden]."""
    y = _routed(network, model, x)
    if not model.shared_intermediate:
        return y
    with network.b.scope("shared"):
        shared = swiglu_layers(network, x, model.hidden, model.shared_intermediate)
    return network.b.op("AddV2", y, shared, name="with_shared")[0]


def _routed(network: RankNetwork, model: MoeModel, x: Tensor) -> Tensor:
    """What the chosen experts make of own rows."""
    if network.scatters_rows or network.tp == 1:
        return _of_own(network, model, x, network.own_rows)
    share = -(-network.own_rows // network.tp)
    with network.b.scope("rows_of_rank"):
        own = _part(network, network.program.copied(x, "tp"), share)
    y = _of_own(network, model, own, share)
    with network.b.scope("rows_of_all"):
        return _whole(network, y, share)


def _part(network: RankNetwork, x: Tensor, share: int) -> Tensor:
    """The `share` rows of x that the rank of tp takes; rows of zeros are behind it where tp does not divide its own."""
    b, more = network.b, share * network.tp - network.own_rows
    if more:
        x = b.op("Pad", x, [[0, more], [0, 0]], name="padded")[0]
    parts = network.reshaped(x, [network.tp, -1])
    own = b.op("GatherV2", parts, network.program.position("tp"), 0, name="part")[0]
    return network.reshaped(own, [share, -1])


def _whole(network: RankNetwork, y: Tensor, share: int) -> Tensor:
    """The rows y of all ranks of tp, without padding: each puts its own among zeros, and they are added up."""
    b, rows = network.b, share * network.tp
    place = network.reshaped(network.program.position("tp"), [1])
    placed = b.op("UnsortedSegmentSum", network.reshaped(y, [1, -1]), place, network.tp, name="placed")[0]
    whole = network.program.all_reduce(network.reshaped(placed, [rows, -1]), "tp")
    return whole if rows == network.own_rows else b.op("Slice", whole, [0, 0], [network.own_rows, -1], name="used")[0]


def _of_own(network: RankNetwork, model: MoeModel, x: Tensor, rows: int) -> Tensor:
    """What the experts make of `rows` rows that the rank alone sends."""
    partial_over = ("tp",) if network.tp > 1 else ()
    routing = route(network, model, x, partial_over)
    sizes = {"rows": rows, "hidden": model.hidden, "experts": model.experts, "topk": model.topk}
    with network.b.scope("experts"):
        dispatch = Dispatch(network, **sizes)
        sent = dispatch.out(x, routing)
        products = _Products(network, model, sent, partial_over)
        hidden = gated_silu(network, products(sent.rows, "gate"), products(sent.rows, "up"))
        return dispatch.back(sent, products(hidden, "down"), routing.weights)


class _Products:
    """Products of each expert's rows with its weights: grouped, or one by one in TensorFlow's ops."""

    def __init__(self, network: RankNetwork, model: MoeModel, sent: Dispatched, partial_over: tuple[str, ...]) -> None:
        self._network, self._model, self._sent, self._partial_over = network, model, sent, partial_over
        self._own: int = model.experts // network.program.mesh.size("ep")

    def __call__(self, x: Tensor, name: str) -> Tensor:
        """x [rows, fan in] by the weights "gate", "up" or "down" of the rank's experts."""
        wide, narrow = self._model.hidden, self._model.expert_intermediate
        fan_in, fan_out = (narrow, wide) if name == "down" else (wide, narrow)
        weights = self._network.parameters.weight(
            name,
            (self._model.experts, fan_in, fan_out),
            split=0,
            over="ep",
            scale=sqrt(3 / fan_in),
            partial_over=self._partial_over,
        )
        b = self._network.b
        if self._network.sizes.fused:
            op = "Partita>Float8GroupedMatMul" if self._network.is_float8 else "Partita>GroupedMatMul"
            return b.op(op, x, weights, self._sent.rows_per_expert, name=f"{name}/products")[0]
        with b.scope(f"{name}/products"):
            return self._one_by_one(x, weights, fan_in)

    def _one_by_one(self, x: Tensor, weights: Tensor, fan_in: int) -> Tensor:
        b, own, product = self._network.b, self._own, self._network.product
        if own == 1:
            return product(x, b.op("Squeeze", weights, squeeze_dims=[0])[0], "product")
        rows, more = divmod(self._sent.assumed_rows, own)
        assumed = [(rows + (k < more), fan_in) for k in range(own)]
        sizes = self._sent.rows_per_expert
        parts = b.op("SplitV", x, sizes, 0, num_split=own, attrs={"_assumed_shapes": encode(assumed, "list(shape)")})
        each = b.op("Unpack", weights, num=own)
        return b.op("ConcatV2", [product(part, w, "product") for part, w in zip(parts, each, strict=True)], 0)[0]
