"""Runs compiled plans: device actors, steps, loops, function calls, and the reference executor.

The names below are imported when they are first used: they are for graphs with functions or with loops that cannot be
compiled, and for traced steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .call_kernels import call_kernel, is_deferred_call, next_uncompiled, size_of_call
    from .callee import Callee
    from .evaluation import ConstantEvaluator
    from .from_kernels.calls import KernelCallees, KernelFunction
    from .interpretation import interpret
    from .interpreted_part import InterpretedPart, start_interpreted
    from .pending import PendingCall
    from .trace import set_times, statistics_of_records, step_stats
    from .traced.callees import TracedCallee
    from .traced.interpreted import TracedInterpretedPart

__all__ = [
    "Callee",
    "ConstantEvaluator",
    "InterpretedPart",
    "KernelCallees",
    "KernelFunction",
    "PendingCall",
    "TracedCallee",
    "TracedInterpretedPart",
    "call_kernel",
    "interpret",
    "is_deferred_call",
    "next_uncompiled",
    "set_times",
    "size_of_call",
    "start_interpreted",
    "statistics_of_records",
    "step_stats",
]

load_lazily(
    __name__,
    {
        "call_kernels": ["call_kernel", "is_deferred_call", "next_uncompiled", "size_of_call"],
        "callee": ["Callee"],
        "evaluation": ["ConstantEvaluator"],
        "from_kernels.calls": ["KernelCallees", "KernelFunction"],
        "interpretation": ["interpret"],
        "interpreted_part": ["InterpretedPart", "start_interpreted"],
        "pending": ["PendingCall"],
        "trace": ["set_times", "statistics_of_records", "step_stats"],
        "traced.callees": ["TracedCallee"],
        "traced.interpreted": ["TracedInterpretedPart"],
    },
)
