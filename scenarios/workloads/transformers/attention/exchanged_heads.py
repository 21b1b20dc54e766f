"""Context parallelism by an exchange of heads (Jacobs et al. 2023: DeepSpeed-Ulysses).

    a rank has     its part of the sequence of all its heads      [length, batch, heads, size]
    and computes   the whole sequence of 1 / cp of them           [sequence, batch, heads / cp, size]

An all-to-all brings queries, keys and values there, another one the output back. Key-value heads that are fewer than
ranks are repeated first, so that each rank gets the ones that its query heads read.
"""

from __future__ import annotations

from .....errors import InvalidArgumentError
from .....graph.builder.handles import Tensor
from ....models.nearest import nearest_divisors, or_text
from ..network import RankNetwork
from .core import AttentionKind, attended


def attended_by_heads(network: RankNetwork, qkv: tuple[Tensor, Tensor, Tensor], kind: AttentionKind) -> Tensor:
    """The attention of the rank's part of the sequence to all of it: [length, batch, heads, value size].

    Raises InvalidArgumentError for heads of a rank that cp ranks cannot share.
    """
    cp, sequence = network.cp, network.sizes.sequence
    if kind.heads % cp:
        near = or_text(nearest_divisors(cp, kind.heads))
        raise InvalidArgumentError(f"{kind.heads} heads of a rank cannot be exchanged by cp={cp} ranks; choose {near}")
    repeats = _repeats(kind, cp)
    share = kind._replace(heads=kind.heads // cp, kv_heads=kind.kv_heads * repeats // cp)
    query, key, value = qkv
    there = (
        _to_heads(network, query, share.heads, kind.size),
        _to_heads(network, _repeated(network, key, kind.kv_heads, repeats, kind.size), share.kv_heads, kind.size),
        _to_heads(
            network, _repeated(network, value, kind.kv_heads, repeats, kind.value_size), share.kv_heads, kind.value_size
        ),
    )
    output = attended(network, there, share, (sequence, sequence)).output
    return _to_sequence(network, output, share.heads, kind.value_size)


def _repeats(kind: AttentionKind, cp: int) -> int:
    """How often each key-value head is there, so that every rank gets one."""
    if kind.kv_heads % cp == 0:
        return 1
    if cp % kind.kv_heads:
        raise InvalidArgumentError(
            f"{kind.kv_heads} key-value heads of a rank are neither divisor nor multiple of cp={cp}; choose a divisor"
        )
    return cp // kind.kv_heads


def _repeated(network: RankNetwork, x: Tensor, heads: int, repeats: int, size: int) -> Tensor:
    """Every head of x [length, batch, heads, size] that many times, one after the other."""
    if repeats == 1:
        return x
    batch, length = network.sizes.batch, network.length
    tiled = network.b.op("Tile", network.reshaped(x, [length, batch, heads, 1, size]), [1, 1, 1, repeats, 1])[0]
    return network.reshaped(tiled, [length, batch, heads * repeats, size], "repeated")


def _to_heads(network: RankNetwork, x: Tensor, heads: int, size: int) -> Tensor:
    """[length, batch, cp * heads, size] -> [sequence, batch, heads, size]."""
    parts = network.reshaped(x, [network.rows, network.cp, heads * size])
    there = network.program.all_to_all(network.transposed(parts, [1, 0, 2], "by_head"), "cp", name="to_heads")
    return network.reshaped(there, [network.sizes.sequence, network.sizes.batch, heads, size])


def _to_sequence(network: RankNetwork, x: Tensor, heads: int, size: int) -> Tensor:
    """[sequence, batch, heads, size] -> [length, batch, cp * heads, size]."""
    parts = network.reshaped(x, [network.cp, network.rows, heads * size], "by_token")
    back = network.program.all_to_all(parts, "cp", name="to_sequence")
    return network.heads(network.transposed(back, [1, 0, 2]), network.cp * heads, size)
