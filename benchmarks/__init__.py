"""How fast Partita is, next to other programs that do the same: `python -m benchmarks`.

The result is a table with a row per promise about speed: our figure, the peer's, the ratio, the floor (what the stack
costs at least), and the promise. Our runs and the peer's alternate, and a figure is the median. A peer runs in its own
process, if necessary with its own interpreter. Slow rows do not fail a build.

    rows (what a row is, verdicts)   sampling (clocks, medians)   table (print, save, compare)
    workloads, models (graphs)       peers/ (other programs)      bench_*.py (the rows, by group)

No program is told how many threads to use, as nobody tells them in real life. What that means depends on what else
the machine does, so that models have two rows each: on idle cores, and beside processes that keep every core busy.
"""

from __future__ import annotations
