"""The compiler: a partition graph becomes a plan, which holds bound kernels but no step, part or actor.

The names below are imported when they are first used: they are for graphs with loops, and for traced steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .distributed_loops import distributed_loops as distributed_loops
    from .local.loops import local_loop as local_loop
    from .tracing import TraceScope as TraceScope, traced as traced

load_lazily(__name__)
