"""Rotary positions (Su et al. 2021): pairs of elements of queries and keys are turned by an angle of their position.

    angle[p, i] = p * frequency[i]           y1, y2 = x1 cos - x2 sin, x1 sin + x2 cos

Pairs are an element and the one half the size behind it, or two neighbours ("interleaved"). The tables of cosines and
sines are computed in float64, for the positions that the rank has, once for each stage.
"""

from __future__ import annotations

import numpy as np

from .....graph.builder.handles import Tensor
from .....graph.dtypes import Array, DataType
from ..network import RankNetwork, wide_type
from ..sequence import positions


def rotary_tables(network: RankNetwork, frequencies: Array, scale: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, frequencies] of the rank's positions, times `scale`; made once for each stage."""
    key = (network.program.stage, frequencies.tobytes(), scale)
    if key not in network.tables:
        network.tables[key] = _tables(network, frequencies, scale)
    return network.tables[key]


def _tables(network: RankNetwork, frequencies: Array, scale: float) -> tuple[Tensor, Tensor]:
    b = network.b
    at = network.reshaped(network.cast(positions(network), DataType.DOUBLE), [network.length, 1])
    angles = b.op("Mul", at, frequencies.astype(np.float64)[None], name="rotary/angles")[0]
    cosines, sines = b.op("Cos", angles, name="rotary/cosines")[0], b.op("Sin", angles, name="rotary/sines")[0]
    if scale != 1.0:
        cosines, sines = cosines * scale, sines * scale
    dtype = wide_type(network.parameters.compute_type)
    return network.cast(cosines, dtype), network.cast(sines, dtype)


def rotated(
    network: RankNetwork, x: Tensor, tables: tuple[Tensor, Tensor], size: int, *, interleaved: bool = False
) -> Tensor:
    """x [length, batch, heads, size] with all its elements turned in pairs; tables are [length, size / 2]."""
    b = network.b
    if network.sizes.fused:
        return b.op("Partita>Rotary", x, *tables, interleaved=interleaved, sequence_first=True, name="rotated")[0]
    cosines, sines = (network.reshaped(table, [-1, 1, 1, size // 2]) for table in tables)
    values = network.wide(x)
    if interleaved:
        first, second = b.op("Unpack", network.reshaped(values, [*_leading(network), size // 2, 2]), num=2, axis=-1)
    else:
        first, second = b.op("Split", -1, values, num_split=2)
    turned = [first * cosines - second * sines, second * cosines + first * sines]
    if interleaved:
        turned = [network.reshaped(b.op("Pack", turned, axis=-1)[0], [*_leading(network), size])]
    joined = turned[0] if interleaved else b.op("ConcatV2", turned, -1, name="joined")[0]
    return network.cast(joined, x.dtype)


def _leading(network: RankNetwork) -> list[int]:
    return [network.length, network.sizes.batch, -1]
