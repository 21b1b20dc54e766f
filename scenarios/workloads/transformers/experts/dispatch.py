"""The way of tokens to their experts and back: sorted by expert, exchanged over the ranks that have them, and returned.

    experts of tokens a, b, c    [2 0] [0 1] [2 3]        topk 2; ranks 0 and 1 of "ep" have experts 0 1 and 2 3
    rows by expert               a b | b | a c | c        experts 0 0 1 2 2 3: three rows for each rank
    rows that rank 0 gets        a b b, and d d of another rank's token d for experts 0 and 1
    sorted by expert             a b d | b d              3 rows for expert 0, 2 for expert 1

With all experts in one place nothing is exchanged. Results come back by the counts that were received, and are added up
for each token by their weights; the backward pass takes the same ways in the other direction.

No value exists on the clock. There every rank gets as many rows as it sends, times `imbalance` of `RankSizes`: all are
as busy as the busiest. The attr `_assumed_shapes` says so to what infers shapes without values; in a run values decide.
Indices are int64, since TensorFlow computes with int32 in the memory of the host.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from .....errors import InvalidArgumentError
from .....graph import DataType
from .....graph.attrs import encode
from .....graph.builder.handles import Tensor
from ..network import RankNetwork
from .router import Routing

_EP = "ep"


class Exchanged(NamedTuple):
    """What it takes to send rows back to other ranks."""

    places: Tensor
    """int64 [received]: where a received row went when rows were sorted by expert"""
    counts: Tensor
    """int64 [ranks]: how many rows came from each"""


class Dispatched(NamedTuple):
    """Rows where their experts are, and what it takes to bring them back to their tokens."""

    rows: Tensor
    """[received, hidden], those of the rank's first expert first"""
    rows_per_expert: Tensor
    """int32 [experts of the rank]"""
    assumed_rows: int
    """how many rows they are on the clock"""
    choices: Tensor
    """int64 [sent]: the number of the choice that each sent row is of, token * topk + choice"""
    tokens: Tensor
    """int64 [sent]: the token that each sent row is of"""
    exchanged: Exchanged | None
    """None where all experts are on the rank"""


class Dispatch:
    """Sends `rows` tokens of width `hidden`, each to `topk` of `experts` experts that the ranks of "ep" share out."""

    def __init__(self, network: RankNetwork, *, rows: int, hidden: int, experts: int, topk: int) -> None:
        """Raises InvalidArgumentError for experts that the ranks cannot share out."""
        ranks = network.program.mesh.size(_EP)
        if experts % ranks:
            raise InvalidArgumentError(f"{experts} experts cannot be shared out over ep={ranks}")
        self._network, self._b = network, network.b
        self._hidden, self._topk = hidden, topk
        self._experts, self._ranks = experts, ranks
        self._sent = rows * topk
        self._received = min(ceil(self._sent * network.sizes.imbalance), self._sent * ranks)

    def out(self, x: Tensor, routing: Routing) -> Dispatched:
        """The rows of x [rows, hidden] at their experts."""
        b = self._b
        chosen = b.op("Reshape", b.op("Cast", routing.experts, DstT=DataType.INT64), [-1], name="chosen")[0]
        experts, choices = self._sorted(chosen, self._sent, "by_expert")
        tokens = b.op("FloorDiv", choices, np.int64(self._topk), name="tokens")[0]
        rows = b.op("GatherV2", x, tokens, 0, name="rows")[0]
        counts = self._counts(chosen, self._experts)
        if self._ranks == 1:
            return Dispatched(rows, self._narrow(counts), self._sent, choices, tokens, None)
        received, per_expert, exchanged = self._exchanged(rows, experts, counts)
        return Dispatched(received, per_expert, self._received, choices, tokens, exchanged)

    def back(self, dispatched: Dispatched, y: Tensor, weights: Tensor) -> Tensor:
        """The weighted sum for each token of y [received, hidden], what experts made of the rows: [rows, hidden]."""
        b, network = self._b, self._network
        if dispatched.exchanged is not None:
            y = b.op("GatherV2", y, dispatched.exchanged.places, 0, name="by_sender")[0]
            y = self._sent_over(y, dispatched.exchanged.counts, self._received, self._sent, "returned")[0]
        flat = network.cast(network.reshaped(weights, [-1, 1]), y.dtype)
        weighted = b.op("Mul", y, b.op("GatherV2", flat, dispatched.choices, 0, name="weights"), name="weighted")
        return b.op("UnsortedSegmentSum", weighted, dispatched.tokens, self._sent // self._topk, name="combined")[0]

    def _exchanged(self, rows: Tensor, experts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Exchanged]:
        """Sorted rows and the numbers of their experts go to the ranks of these; there they are sorted again.

        The rows, how many are of each expert, and how they come back.
        """
        b, own = self._b, self._experts // self._ranks
        per_rank = b.op("Sum", b.op("Reshape", counts, [self._ranks, own]), [1], name="per_rank")
        sent = b.op("Cast", per_rank, DstT=DataType.INT64, name="send_counts")[0]
        local = b.op("FloorMod", experts, np.int64(own), name="local")[0]
        received, received_counts = self._sent_over(rows, sent, self._sent, self._received, "received")
        numbers, _ = self._sent_over(local, sent, self._sent, self._received, "received_experts")
        size = b.op("StridedSlice", b.op("Shape", numbers), [0], [1], [1], shrink_axis_mask=1, name="size")[0]
        order = self._sorted(numbers, size, "by_local_expert")[1]
        grouped = b.op("GatherV2", received, order, 0, name="grouped")[0]
        places = self._sorted(order, size, "places")[1]
        return grouped, self._narrow(self._counts(numbers, own)), Exchanged(places, received_counts)

    def _sent_over(self, x: Tensor, counts: Tensor, rows: int, assumed: int, name: str) -> tuple[Tensor, Tensor]:
        """An exchange of `rows` rows for, on the clock, `assumed` rows."""
        rest = (self._hidden,) if x.dtype is not DataType.INT64 else ()
        shapes = {
            "_assumed_shapes": encode([(assumed, *rest), (self._ranks,)], "list(shape)"),
            "_assumed_sent_shapes": encode([(rows, *rest), (self._ranks,)], "list(shape)"),
        }
        return self._network.program.all_to_all_v(x, counts, _EP, name=name, **shapes)

    def _sorted(self, numbers: Tensor, size: Tensor | int, name: str) -> tuple[Tensor, Tensor]:
        """`size` numbers in ascending order, equal ones as they come, and where each was.

        The second of a permutation is its inverse; InvertPermutation would compute it in the memory of the host. A
        size that is computed is that of received rows.
        """
        b, received = self._b, [(self._received,), (self._received,)]
        attrs = {} if isinstance(size, int) else {"_assumed_shapes": encode(received, "list(shape)")}
        with b.scope(name):
            highest, order = b.op("TopKV2", b.op("Neg", numbers), size, attrs=attrs)
            return b.op("Neg", highest)[0], b.op("Cast", order, DstT=DataType.INT64)[0]

    def _counts(self, numbers: Tensor, size: int) -> Tensor:
        """How often each of the numbers from 0 to `size` occurs, as float32."""
        b = self._b
        narrow = b.op("Cast", numbers, DstT=DataType.INT32)
        return b.op("DenseBincount", narrow, np.int32(size), np.zeros(0, np.float32), name="counts")[0]

    def _narrow(self, counts: Tensor) -> Tensor:
        return self._b.op("Cast", counts, DstT=DataType.INT32, name="rows_per_expert")[0]
