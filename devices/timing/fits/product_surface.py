"""What the residuals of products may depend on, and the products that a surface was kept at.

64 x 4096 x 4096 on 132 SMs     log2 m 6, log2 n 12, log2 k 12, idle 64x64 1.04, alignment 4, ...
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from attrs import field, frozen

from ....graph.arrays import Floats, Numbers
from .surface import Residuals, Surface, SurfaceNumbers

LAYOUTS = ("TN", "NN", "NT")
WASTE_TILES = ((256, 128), (128, 128), (64, 64))
"""tiles whose last wave counts, in rows and columns"""
MOST_ALIGNMENT = 4
"""powers of two by which all three sizes divide, beyond which no kernel cares"""


def features(m: Numbers, n: Numbers, k: Numbers, layout: tuple[str, ...] | None, sm_count: int) -> dict[str, Floats]:
    """What residuals may depend on, a column each: log2 sizes, share of idle SMs, alignment, layout."""
    columns: dict[str, Floats] = {
        f"log2 {name}": np.log2(a.astype(np.float64)) for name, a in (("m", m), ("n", n), ("k", k))
    }
    for rows, cols in WASTE_TILES:
        waves = np.ceil(m / rows) * np.ceil(n / cols) / sm_count
        columns[f"idle {rows}x{cols}"] = np.minimum(np.log2(np.ceil(waves) / waves), 3.0)
    powers = [((m | n | k) % (1 << power) == 0).astype(np.float64) for power in range(1, MOST_ALIGNMENT + 1)]
    columns["alignment"] = np.asarray(np.sum(powers, axis=0))
    for name in LAYOUTS if layout is not None else ():
        columns[f"layout {name}"] = np.array([float(given == name) for given in layout or ()])
    return columns


class ProductRows(NamedTuple):
    """The products that a surface was kept at."""

    m: Numbers
    n: Numbers
    k: Numbers
    layout: tuple[str, ...] | None


@frozen(eq=False)
class ProductSurface:
    """A surface over products on a device with `sm_count` SMs."""

    rows: ProductRows
    residuals: Residuals
    numbers: SurfaceNumbers
    sm_count: int
    _surface: Surface = field(init=False)

    def __attrs_post_init__(self) -> None:
        surface = Surface(features(*self.rows, self.sm_count), self.residuals, self.numbers)
        object.__setattr__(self, "_surface", surface)

    def at(self, m: Numbers, n: Numbers, k: Numbers, layout: tuple[str, ...] | None) -> tuple[Floats, Floats]:
        """The residual's mean and standard deviation, that of one measurement included, by product."""
        return self._surface.at(features(m, n, k, layout, self.sm_count))

    def tells(self, layout: str) -> bool:
        """Whether its rows tell what a layout changes."""
        return f"layout {layout}" in self.numbers.lengths

    def nearest(self, m: int, n: int, k: int, count: int) -> Numbers:
        """The numbers of the rows nearest to a product, the nearest first."""
        m_, n_, k_ = (np.array([size]) for size in (m, n, k))
        return self._surface.nearest(features(m_, n_, k_, None, self.sm_count), count)
