"""Which tokens of a sequence a rank has, and at which positions they are.

    cp=2 by heads    rank 0 has tokens 0 1 2 3, rank 1 has 4 5 6 7
    cp=2 as a ring   rank 0 has tokens 0 1 6 7, rank 1 has 2 3 4 5

In a ring rank r has the chunks r and 2 cp - 1 - r of 2 cp: under a causal mask all ranks have as much to compute. With
sequence parallelism tp ranks have equal parts of these, in order.
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.builder.handles import Tensor
from ....graph.dtypes import Array
from ...models.nearest import nearest_multiples, or_text
from .network import RankNetwork


def order_of_tokens(sequence: int, cp: int, cp_kind: str) -> Array:
    """The positions of the tokens [sequence] in the order of the ranks that have them."""
    positions = np.arange(sequence, dtype=np.int32)
    if cp == 1 or cp_kind != "ring":
        return positions
    if sequence % (2 * cp):
        near = or_text(nearest_multiples(sequence, 2 * cp))
        raise InvalidArgumentError(
            f"a ring of {cp} ranks cuts a sequence into {2 * cp} chunks, which {sequence} tokens are not divisible by; "
            f"choose {near}"
        )
    chunks = positions.reshape(2 * cp, -1)
    return np.concatenate([chunks[[rank, 2 * cp - 1 - rank]].reshape(-1) for rank in range(cp)])


def positions(network: RankNetwork, *, own: bool = False) -> Tensor:
    """The positions of the rank's tokens, int32 [length]; with `own` those of its own rows only [own rows / batch]."""
    b, sizes = network.b, network.sizes
    if network.decodes:
        return network.reshaped(network.position, [1], "positions")
    order = b.constant(order_of_tokens(sizes.sequence, network.cp, network.split.cp_kind), name="positions/all")
    begin, length = _begin(network), network.length
    if own and network.scatters_rows:
        length = _tokens_of_own_rows(network)
        start = network.offset("tp", length)
        begin = start if begin is None else begin + start
    if begin is None:
        return order
    return b.op("Slice", order, b.op("Pack", [begin], name="positions/begin"), [length], name="positions")[0]


def _begin(network: RankNetwork) -> Tensor | None:
    return network.offset("cp", network.length) if network.cp > 1 else None


def _tokens_of_own_rows(network: RankNetwork) -> int:
    if network.length % network.tp:
        near = or_text(nearest_multiples(network.length, network.tp))
        raise InvalidArgumentError(
            f"with learned positions and sequence parallelism the {network.length} tokens of a sequence on a rank "
            f"must be divisible by tp={network.tp}; choose {near}"
        )
    return network.length // network.tp


def input_rows(network: RankNetwork, tokens: Tensor) -> Tensor:
    """Numbers of tokens [batch, length] in the order of rows [rows]."""
    if network.sizes.batch == 1:
        return network.reshaped(tokens, [network.rows], "rows")
    return network.reshaped(network.transposed(tokens, [1, 0]), [network.rows], "rows")
