"""What the busiest GPU of an expert layer has to do: its tokens, its active experts, and the rows of their tiles.

    256 tokens, 8 of 256 experts each, 4 GPUs      balanced: 512 rows, 64 active experts, 64 tiles of 16 rows
    the same, exponent 1.2                         623 rows, 55 active experts, 77 tiles, 58 rows at the fullest expert

A row is one token at one expert. Under a power law the popularity of each expert is drawn from a density x^-exponent
between 1 and 80 % of the tokens (0.01 and 2 where there are fewer rows than experts), and scaled so that all rows are
dealt; no expert has a token twice, and what rounding leaves over goes one by one to those with the fewest rows. Experts
lie on the GPUs in order, and the GPU with most rows is the one that others wait for. Laws of that form, drawn anew for
each run, are what serving benchmarks skew their routing by. The numbers are means over `DRAWS` draws, always the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .....errors import InvalidArgumentError
from .....graph.arrays import Floats

TILE_ROWS = (16, 64, 128)
DRAWS = 12
MOST_SHARE = 0.8
"""of the tokens, the greatest popularity of an expert before scaling"""
FEW_LEAST, FEW_MOST = 0.01, 2.0


class ExpertLoad(NamedTuple):
    """Of the busiest GPU."""

    rows: float
    active: float
    """experts with a row"""
    most_rows: float
    """of one expert"""
    tiles: tuple[float, ...]
    """by `TILE_ROWS`, of all experts"""


@lru_cache(maxsize=65536)
def busiest(tokens: int, top_k: int, experts: int, gpus: int, exponent: float) -> ExpertLoad:
    """The load of the busiest of `gpus`; the exponent 0 is balanced. InvalidArgumentError for what cannot be dealt."""
    if experts % gpus or top_k > experts:
        raise InvalidArgumentError(
            f"{experts} experts cannot be dealt to {gpus} GPUs with {top_k} for each token: the GPUs must divide them, "
            "and a token has at most all of them"
        )
    if exponent == 0:
        return _balanced(tokens, top_k, experts, gpus)
    rows = _drawn(tokens, top_k, experts, exponent).reshape(DRAWS, gpus, experts // gpus)
    of = rows[np.arange(DRAWS), rows.sum(axis=2).argmax(axis=1)]
    return ExpertLoad(
        float(of.sum(axis=1).mean()),
        float((of > 0).sum(axis=1).mean()),
        float(of.max(axis=1).mean()),
        tuple(float(np.ceil(of / tile).sum(axis=1).mean()) for tile in TILE_ROWS),
    )


def _balanced(tokens: int, top_k: int, experts: int, gpus: int) -> ExpertLoad:
    rows, each = tokens * top_k, np.ceil(tokens * top_k / experts)
    active = float(min(experts // gpus, -(-rows // gpus)))
    return ExpertLoad(
        max(1.0, rows / gpus), active, float(each), tuple(float(active * np.ceil(each / tile)) for tile in TILE_ROWS)
    )


@lru_cache(maxsize=1024)
def _uniform(experts: int) -> tuple[Floats, Floats]:
    """Draws of popularity, and what decides between experts with as many rows."""
    draw = np.random.default_rng(experts)
    return draw.uniform(size=(DRAWS, experts)), draw.uniform(0, 0.5, size=(DRAWS, experts))


def _drawn(tokens: int, top_k: int, experts: int, exponent: float) -> Floats:
    """Rows of each expert, a draw a row; each draw deals all rows."""
    uniform, ties = _uniform(experts)
    total = tokens * top_k
    least, most = (1.0, max(1.5, MOST_SHARE * tokens)) if total > experts else (FEW_LEAST, FEW_MOST)
    popularity = _power_law(uniform, exponent, least, most)
    rows = np.round(popularity / popularity.sum(axis=1, keepdims=True) * total)
    over = np.maximum(rows - tokens, 0).sum(axis=1, keepdims=True)
    rows = np.minimum(rows, tokens)
    rank = (rows + ties).argsort(axis=1).argsort(axis=1)  # 0: the fewest rows
    rows = np.minimum(rows + np.clip(over - rank * tokens, 0, tokens), tokens)
    return _corrected(rows, ties, total, tokens)


def _corrected(rows: Floats, ties: Floats, total: int, most: int) -> Floats:
    """One row more or less for those with the fewest, until all are dealt; no expert has more than `most`, nor less
    than none."""
    while (left := total - rows.sum(axis=1, keepdims=True)).any():
        can_change = np.where(left > 0, rows < most, rows > 0)
        order = np.where(can_change, rows + ties, np.inf).argsort(axis=1).argsort(axis=1)  # 0: the fewest rows
        rows = rows + np.sign(left) * ((order < np.abs(left)) & can_change)
    return rows


def _power_law(uniform: Floats, exponent: float, least: float, most: float) -> Floats:
    """Uniform draws as draws from x^-exponent between two ends."""
    if exponent == 1:
        return np.asarray(least * (most / least) ** uniform)
    power = 1 - exponent
    return np.asarray(((most**power - least**power) * uniform + least**power) ** (1 / power))
