"""The feed-forward network of a layer as a rank runs it: dense layers, or a router and experts.

    dense      norm, gate and up, silu(gate) * up, down, sum over tp, residual sum
    experts    norm, router, rows sorted by expert, exchange over ep, grouped products, the way back, weighted sum

These are the ops of `scenarios/workloads/transformers/experts` and `feed_forward`, in the order of a stream.
"""

from __future__ import annotations

from ....graph.dtypes import DataType, item_size
from ...models.gpt import GptModel
from ...models.moe import MoeModel
from .attention import norm, summed
from .operations import RankExchange, RankOps, Remainder
from .rank import Rank

_INT64 = item_size(DataType.INT64)


def feed_forward(run: RankOps, rank: Rank, *, has_experts: bool) -> None:
    """Norm, network and residual sum of one layer."""
    model, rows = rank.model, rank.rows
    norm(run, rank)
    if isinstance(model, GptModel):
        width = model.intermediate // rank.tp
        run.product(rows, model.hidden, width)
        run.bias(rows, width)
        run.moves("Partita>Gelu", rows * width)
        run.product(rows, width, model.hidden)
        summed(run, rank, model.hidden)
        run.bias(rows, model.hidden)
    elif has_experts and isinstance(model, MoeModel):
        _experts(run, rank, model)
    else:
        _gated(run, rank, model.intermediate)
        summed(run, rank, model.hidden)
    run.moves("AddV2", rows * model.hidden, operands=2)


def _gated(run: RankOps, rank: Rank, intermediate: int) -> None:
    """silu(gate) * up, and down; without the sum over tp."""
    rows, hidden, width = rank.rows, rank.model.hidden, intermediate // rank.tp
    for _ in ("gate", "up"):
        run.product(rows, hidden, width)
    run.moves("Partita>GatedSilu", rows * width, operands=2)
    run.product(rows, width, hidden)


def _experts(run: RankOps, rank: Rank, model: MoeModel) -> None:
    rows, hidden = -(-rank.rows // rank.tp), model.hidden
    sent, own = rows * model.topk, model.experts // rank.ep
    if rank.tp > 1:  # ranks of tp have the same rows and the same experts: each takes a part of the rows
        if rows * rank.tp > rank.rows:
            run.op("Pad", ((rank.rows, hidden), (2, 2)), ((rows * rank.tp, hidden),), T=run.compute)
        run.gathered(1, rows * hidden, rank.tp)
    if model.shared_intermediate:
        _gated(run, rank, model.shared_intermediate)
    first = len(run.items)
    _routed(run, model, rows)
    _sent(run, rank, model, rows)
    for _ in ("gate", "up"):
        run.grouped_product(sent, own, hidden, model.expert_intermediate)
    run.moves("Partita>GatedSilu", sent * model.expert_intermediate, operands=2)
    run.grouped_product(sent, own, model.expert_intermediate, hidden)
    if rank.ep > 1:
        run.gathered(sent, hidden, sent)
        run.meets("all_to_all", "ep", sent * hidden * run.element_bytes)
    run.weighed(sent, hidden)
    _added(run, sent, rows, hidden)
    if rank.tp > 1:
        _added(run, 1, rank.tp, rows * hidden)
        run.meets("all_reduce", "tp", rows * rank.tp * hidden * run.element_bytes)
        if rows * rank.tp > rank.rows:
            run.cut((rows * rank.tp, hidden), (rank.rows, hidden))
    if model.shared_intermediate:
        if rank.tp > 1:  # nobody waits for the sum of the shared expert while tokens are with the others
            summing = RankExchange("all_reduce", "tp", rank.rows * hidden * run.element_bytes)
            run.items.append(Remainder(summing, run.kernels(first)))
        run.moves("AddV2", rank.rows * hidden, operands=2)


def _added(run: RankOps, rows: int, into: int, width: int) -> None:
    """Rows are added up into some rows."""
    inputs, outputs = ((rows, width), (rows,), ()), ((into, width),)
    run.op("UnsortedSegmentSum", inputs, outputs, T=run.compute, Tindices=DataType.INT64)


def _routed(run: RankOps, model: MoeModel, rows: int) -> None:
    """Scores of all experts in the wide type, the best of them, and their weights."""
    experts, topk, wide = model.experts, model.topk, run.wide
    run.cast(rows * model.hidden, run.compute, wide)
    run.product(rows, model.hidden, experts, dtype=wide)
    if model.router == "sigmoid":
        run.moves("Sigmoid", rows * experts, dtype=wide)
    else:
        run.op("Softmax", ((rows, experts),), ((rows, experts),), T=wide)
    if model.router_bias:
        run.moves("AddV2", rows * experts, operands=2, dtype=wide)
        run.weight_bytes += experts * item_size(wide)
    if model.groups_kept < model.groups:
        _best(run, rows * model.groups, experts // model.groups, 2)
        run.small(5 if model.group_score == "top2" else 4, rows * model.groups)
        run.moves("AddV2", rows * experts, operands=2, dtype=wide)
    _best(run, rows, experts, topk)
    inputs = ((rows, topk), (), (), ())
    run.op("OneHot", inputs, ((rows, topk, experts),), T=wide, TI=DataType.INT32)
    shapes = ((rows, 1, experts), (rows, topk, experts))
    run.op("BatchMatMulV2", shapes, ((rows, 1, topk),), T=wide, adj_y=True)
    run.small(2 * model.normalise_weights + (model.weight_scale != 1), rows * topk)
    run.small(1 if model.normalise_weights and model.router == "sigmoid" else 0, rows)


def _best(run: RankOps, rows: int, of: int, count: int) -> None:
    outputs = ((rows, count), (rows, count))
    run.op("TopKV2", ((rows, of), ()), outputs, T=run.wide, Tk=DataType.INT32, index_type=DataType.INT32)


def _sent(run: RankOps, rank: Rank, model: MoeModel, rows: int) -> None:
    """Rows in the order of experts, where these are.

    While numbers of experts travel rows are gathered, and while rows travel these numbers are sorted and counted.
    """
    sent = rows * model.topk
    if rank.ep == 1:
        run.small(10, sent)
        run.gathered(sent, model.hidden, rows)
        return
    run.small(11, sent)
    run.waits()
    gathering, sorting = run.apart(), run.apart()
    gathering.gathered(sent, model.hidden, rows)
    gathering.small(2, sent)
    sorting.small(6, sent)
    run.meets("all_to_all", "ep", sent * _INT64, gathering.kernels())
    run.meets("all_to_all", "ep", sent * model.hidden * run.element_bytes, sorting.kernels())
    run.gathered(sent, model.hidden, sent)
    run.small(3, sent)
