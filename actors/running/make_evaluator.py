"""Makes what computes constant nodes; apart, so that whoever has no pass that asks for values loads no kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .evaluation import ConstantEvaluator


def make_evaluator() -> ConstantEvaluator:
    """An evaluator with a CPU of its own."""
    from .evaluation import ConstantEvaluator

    return ConstantEvaluator()
