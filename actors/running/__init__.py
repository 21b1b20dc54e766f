"""Runs compiled plans: device actors, steps, loops, function calls, and the reference executor.

The names below are imported when they are first used: they are for graphs with functions or with loops that cannot be
compiled, and for traced steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .call_kernels import (
        call_kernel as call_kernel,
        is_deferred_call as is_deferred_call,
        next_uncompiled as next_uncompiled,
        size_of_call as size_of_call,
    )
    from .callee import Callee as Callee
    from .from_kernels.calls import KernelCallees as KernelCallees, KernelFunction as KernelFunction
    from .interpretation import interpret as interpret
    from .interpreted_part import InterpretedPart as InterpretedPart, start_interpreted as start_interpreted
    from .loops.whole_body import WholeBody as WholeBody, whole_body as whole_body
    from .pending import PendingCall as PendingCall
    from .trace import set_times as set_times, statistics_of_records as statistics_of_records, step_stats as step_stats
    from .traced.callees import TracedCallee as TracedCallee
    from .traced.interpreted import TracedInterpretedPart as TracedInterpretedPart

load_lazily(__name__)
