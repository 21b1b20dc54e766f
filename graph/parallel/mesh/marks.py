"""Attrs of the nodes of rank programs, by which passes and the clock know what they are for.

Those of collectives, `_mesh`, `_axis` and `_instance`, are in `analysis.collective_seats`.
"""

from __future__ import annotations

OF_RANK = "_of_rank"
"""on a constant that differs by rank: "position:AXES" or "key:AXES" """
COUNTS_MICROBATCHES = "_counts_microbatches"
"""on a scalar constant of int32 in whose place each call has the number of its micro-batch"""
REDUCED_OVER = "_reduced_over"
"""on a variable: the axes over which its gradient is summed"""
MULTIPLICITY = "_multiplicity"
"""the number of devices that a node stands for"""
