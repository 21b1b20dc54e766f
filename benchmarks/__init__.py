"""How fast Partita is, next to other programs that do the same: `python -m benchmarks`.

Flows in: flags (`--help` lists them). Flows out: one table, a row per promise about speed, with our figure, the peer's,
the ratio, the floor of the stack, and what was promised. Always holds: ours and the peer's runs alternate; a figure is
the median; a peer runs in a process, and if need be in an interpreter, of its own; nothing here judges a build.

    rows (what a row is, verdicts)   sampling (clocks, medians)   table (print, save, compare)
    workloads, models (graphs)       peers/ (other programs)      bench_*.py (the rows, by group)

Linear algebra is kept to one thread on both sides, so that kernels are compared and not the number of cores.
"""

from __future__ import annotations

import os

# Read by OpenBLAS when numpy is loaded, hence before any module of this package can load it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
