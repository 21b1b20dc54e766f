"""The time of causal flash attention: the soft maximum of a latency and of operations by rate, in each direction.

    forward, 8 heads of 128 + 128, 4096 positions, B200:    latency 92 us, operations 32 us   ->   95 us
    the same with 128 heads:                                latency 92 us, operations 510 us  ->  514 us

Operations are those of the full square of positions, forward 2 * batch * seq_len^2 * heads * (qk_head_dim +
v_head_dim) and backward 2.5 times that. A causal kernel does half of them, so the share of the peak may exceed 1; it
is kept at most `MOST_SHARE`. The latency is one block's way along all positions: it grows with positions and head
dims, and shows where batch * heads do not fill the device. The rate falls with a power of the head dims. Heads of keys
and values change nothing that the rows at hand show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Numbers
from .layer_model import LayerColumns, LayerModel
from .layers import SizeRanges, counts, soft_maximum
from .sourced import Unit

DIRECTIONS = ("fwd", "bwd")
BACKWARD_FACTOR = 2.5
"""operations backward by operations forward"""
MOST_SHARE = 2.0
"""of the peak, by the operations of the full square: a causal kernel does no less than half of them"""
USUAL_LENGTH, USUAL_DIMS = 4096, 256
"""positions and head dims (of queries and values together) at which latency and rate are stated"""
UNITS: Mapping[str, Unit] = {
    "latency": "ns",
    "rate": "FLOP/s",
    "dims_power": "",
    "sharpness": "",
    "spread": "",
}
SIZES = ("seq_len", "streams", "dims")
"""what ranges are of; streams are batch * heads"""


class Attentions(LayerColumns):
    """Attention layers, whose kinds are the directions; heads must be a multiple of those of keys and values.

    `square` is seq_len^2 unless given. Of attention that is not causal over one sequence, as the measured ones are,
    `seq_len` is the longest way of a block, and `square` twice the pairs of a query and a key that it sees.
    """

    KIND, KINDS = "direction", DIRECTIONS
    COLUMNS = ("batch", "seq_len", "heads", "kv_heads", "qk_head_dim", "v_head_dim")

    def __init__(
        self,
        direction: Sequence[str],
        square: Sequence[int] | NDArray[Any] | None = None,
        **columns: Sequence[int] | NDArray[Any],
    ) -> None:
        super().__init__(direction, **columns)
        seq_len = self.columns["seq_len"]
        self.columns["square"] = seq_len * seq_len if square is None else counts(square, "square", len(direction))
        for heads, kv_heads in zip(*(self.columns[name].tolist() for name in ("heads", "kv_heads")), strict=True):
            if heads % kv_heads:
                raise InvalidArgumentError(f"heads = {heads} must be a multiple of kv_heads = {kv_heads}")

    @property
    def sizes(self) -> dict[str, Numbers]:
        """What the formula depends on, in the order of `SIZES`."""
        batch, seq_len, heads, _, qk_head_dim, v_head_dim, _ = self.columns.values()
        return dict(zip(SIZES, (seq_len, batch * heads, qk_head_dim + v_head_dim), strict=True))

    @property
    def flops(self) -> Floats:
        """Operations of the full square, a multiply-add as two."""
        _, streams, dims = (column.astype(np.float64) for column in self.sizes.values())
        square = self.columns["square"].astype(np.float64)
        return np.asarray(2 * square * streams * dims * np.where(self.of_kind("bwd"), BACKWARD_FACTOR, 1.0))

    @property
    def bytes(self) -> Floats:
        """Bytes of queries, keys, values and outputs in bf16, read or written once; backward of their gradients too."""
        batch, seq_len, heads, kv_heads, qk_head_dim, v_head_dim, _ = self.columns.values()
        dims = qk_head_dim + v_head_dim
        forward = 2 * batch * seq_len * dims * (heads.astype(np.float64) + kv_heads.astype(np.float64))
        return np.asarray(np.where(self.of_kind("bwd"), 2.0, 1.0) * forward)


class AttentionNumbers(NamedTuple):
    """What is fitted for one direction.

    Latency and rate are those at `USUAL_LENGTH` positions and `USUAL_DIMS` head dims; `spread` is half of the 80 %
    interval in log time.
    """

    latency_ns: float
    rate_flops_per_s: float
    dims_power: float
    sharpness: float
    spread: float = 1.0

    def time_ns(self, attentions: Attentions, ranges: SizeRanges) -> Floats:
        """Times by row, not capped; outside of the range of head dims the rate is that at its end."""
        seq_len, _, dims = attentions.sizes.values()
        latency = self.latency_ns * (seq_len / USUAL_LENGTH) * (dims / USUAL_DIMS)
        slower = (np.clip(dims, *ranges["dims"]) / USUAL_DIMS) ** self.dims_power
        return soft_maximum(latency, attentions.flops * 1e9 / self.rate_flops_per_s * slower, self.sharpness)


@frozen(eq=False)
class AttentionModel(LayerModel[Attentions, AttentionNumbers]):
    """Numbers by direction; the table `[fits.attention]` of a calibration file."""

    LAYERS, SIZES, UNITS, MAKE, MOST_SHARE = Attentions, SIZES, UNITS, AttentionNumbers, MOST_SHARE
    LATENCY_POWER = 0.5  # assumed: a block's way along all positions is as much softmax and waiting as products
