"""How fast Partita is, next to other programs that do the same: `python -m benchmarks`.

The result is a table with a row per promise about speed: our figure, the peer's, the ratio, the floor (what the stack
costs at least), and the promise. Our runs and the peer's alternate, and a figure is the median. A peer runs in its own
process, if necessary with its own interpreter. Slow rows do not fail a build.

    rows (what a row is, verdicts)   sampling (clocks, medians)   table (print, save, compare)
    workloads, models (graphs)       peers/ (other programs)      bench_*.py (the rows, by group)

Linear algebra has one thread on both sides, so that kernels are compared and not the number of cores.
"""

from __future__ import annotations

import os

# Read by OpenBLAS when numpy is loaded, hence before any module of this package can load it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
