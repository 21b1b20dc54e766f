"""Logits of classes that are split over the ranks of tp, and the cross entropy of labels (Shoeybi et al. 2019, 3).

    logits [rows, classes of the rank] -> logsumexp and the label's logit of the rank's classes -> those of all classes

    loss = log(sum over ranks exp(logsumexp_r - M)) + M - sum over ranks target_r        M = max over ranks logsumexp_r

Classes that only pad the table never win. Rows whose label is negative have no loss and are not counted.
"""

from __future__ import annotations

from typing import NamedTuple

from ....graph.builder.handles import Tensor
from .network import RankNetwork, wide_type
from .products import entered

_NEVER = -1e30  # finite, so that a rank all of whose classes only pad has no 0 * infinity


class ClassLogits(NamedTuple):
    """Logits of the rank's classes."""

    values: Tensor
    """[rows, padded / tp]"""
    classes: int
    """how many there are"""
    padded: int
    """how many the ranks have together"""


class TokenLosses(NamedTuple):
    """What a micro-batch of the rank adds to the loss of a step; both are equal on the ranks of tp."""

    total: Tensor
    """the sum of the losses of rows with a label, a scalar of float32 (float64 where the network computes in it)"""
    labelled: Tensor
    """how many rows have a label, a scalar of the same type"""


def class_logits(
    network: RankNetwork, x: Tensor, table: Tensor, classes: int, padded: int, *, bias: Tensor | None = None
) -> ClassLogits:
    """x [own rows, hidden] @ table' (+ bias) of the rank's classes; in inference of each last token alone."""
    x = entered(network, x)
    if network.sizes.cache and not network.decodes:
        first = network.rows - network.sizes.batch
        x = network.b.op("Slice", x, [first, 0], [network.sizes.batch, -1], name="last_tokens")[0]
    return logits_of_rows(network, x, table, classes, padded, bias=bias)


def logits_of_rows(
    network: RankNetwork, x: Tensor, table: Tensor, classes: int, padded: int, *, bias: Tensor | None = None
) -> ClassLogits:
    """`class_logits` of some rows that `entered` gave."""
    values = network.b.op("MatMul", x, table, transpose_b=True, name="logits")[0]
    if bias is not None:
        values = network.b.op("BiasAdd", values, bias, name="biased_logits")[0]
    return ClassLogits(values, classes, padded)


def token_losses(network: RankNetwork, logits: ClassLogits, labels: Tensor) -> TokenLosses:
    """The losses of labels [rows]."""
    b, program = network.b, network.program
    first = network.offset("tp", logits.padded // network.tp)
    logsumexp, target = (_fused if network.sizes.fused else _spelled)(network, logits, labels, first)
    if network.tp > 1:
        most = program.all_reduce(b.op("StopGradient", logsumexp)[0], "tp", merge="Max", name="most")
        total = program.all_reduce(b.op("Exp", logsumexp - most)[0], "tp", name="sum")
        logsumexp = b.op("AddV2", b.op("Log", total), most, name="logsumexp")[0]
        target = program.all_reduce(target, "tp", name="target")
    has_label = network.cast(b.op("GreaterEqual", labels, 0, name="has_label")[0], logsumexp.dtype)
    losses = b.op("Mul", logsumexp - target, has_label, name="losses")
    return TokenLosses(b.op("Sum", losses, [0], name="total")[0], b.op("Sum", has_label, [0], name="count")[0])


def whole_logits(network: RankNetwork, logits: ClassLogits) -> Tensor:
    """The logits of all classes [rows, classes] on every rank, in float32 at least."""
    b = network.b
    values = network.wide(logits.values)
    if network.tp > 1:
        columns = network.program.all_gather(network.transposed(values, [1, 0]), "tp", name="all_classes")
        values = network.transposed(columns, [1, 0])
    return b.op("Slice", values, [0, 0], [-1, logits.classes], name="whole")[0]


def _fused(network: RankNetwork, logits: ClassLogits, labels: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    logsumexp, target = network.b.op(
        "Partita>SoftmaxCrossEntropy",
        logits.values,
        labels,
        first,
        U=wide_type(logits.values.dtype),
        classes_end=logits.classes if logits.padded > logits.classes else 0,
        name="cross_entropy",
    )
    return logsumexp, target


def _spelled(network: RankNetwork, logits: ClassLogits, labels: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    b = network.b
    share = logits.padded // network.tp
    values = network.wide(logits.values)
    if logits.padded > logits.classes:
        numbers = b.op("AddV2", b.op("Range", 0, share, 1), first, name="class")
        values = b.op("SelectV2", b.op("Less", numbers, logits.classes), values, _NEVER, name="real")[0]
    most = b.op("StopGradient", b.op("Max", values, [1], keep_dims=True, name="row_most"))
    total = b.op("Sum", b.op("Exp", b.op("Sub", values, most)), [1], keep_dims=True)
    logsumexp = b.op("Squeeze", b.op("AddV2", b.op("Log", total), most), squeeze_dims=[1], name="row_logsumexp")[0]
    on, off = b.constant(1.0, values.dtype), b.constant(0.0, values.dtype)
    chosen = b.op("OneHot", labels - first, share, on, off, name="chosen")
    return logsumexp, b.op("Sum", b.op("Mul", values, chosen), [1], name="row_target")[0]
