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
    )
    from .call_kernels import (
        is_deferred_call as is_deferred_call,
    )
    from .call_kernels import (
        next_uncompiled as next_uncompiled,
    )
    from .call_kernels import (
        size_of_call as size_of_call,
    )
    from .callee import Callee as Callee
    from .evaluation import ConstantEvaluator as ConstantEvaluator
    from .from_kernels.calls import KernelCallees as KernelCallees
    from .from_kernels.calls import KernelFunction as KernelFunction
    from .interpretation import interpret as interpret
    from .interpreted_part import InterpretedPart as InterpretedPart
    from .interpreted_part import start_interpreted as start_interpreted
    from .pending import PendingCall as PendingCall
    from .trace import set_times as set_times
    from .trace import statistics_of_records as statistics_of_records
    from .trace import step_stats as step_stats
    from .traced.callees import TracedCallee as TracedCallee
    from .traced.interpreted import TracedInterpretedPart as TracedInterpretedPart

load_lazily(__name__)
